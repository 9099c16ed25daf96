"""Every scenario."""

from tests.oracle.scenarios import (
    assistants,
    crons,
    errors,
    headers,
    running,
    searching,
    state,
    stateless,
    steering,
    store,
    streaming,
    texting,
    threads,
)
from tests.oracle.scenarios.scenario import SCENARIOS

MODULES = (
    assistants, crons, errors, headers, running, searching, state, stateless, steering, store, streaming, texting,
    threads,
)  # fmt: skip

__all__ = ["MODULES", "SCENARIOS"]
