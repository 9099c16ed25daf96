"""Outside any run, effects are refused in words; and what the package exports is imported when it is asked for."""

import subprocess
import sys

import pytest

import agentvisor
from agentvisor.core.errors import InvalidInput


def test_once_says_where_it_works() -> None:
    for call in (lambda: agentvisor.once("key", lambda: 1), lambda: agentvisor.idempotency_key("a")):
        with pytest.raises(InvalidInput, match="inside a run"):
            call()


def test_interrupt_says_where_it_works() -> None:
    with pytest.raises(InvalidInput, match="in the run of a plain Python agent"):
        agentvisor.interrupt("sure?")


def test_importing_the_package_imports_nothing_of_it() -> None:
    code = "import agentvisor, sys; print([m for m in sys.modules if m.startswith(('agentvisor.', 'google.', 'grpc'))])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"


def test_the_names_that_are_exported_are_there() -> None:
    for name in agentvisor.__all__:
        assert getattr(agentvisor, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'twice'"):
        agentvisor.twice  # type: ignore[attr-defined]  # noqa: B018
