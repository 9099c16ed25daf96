"""A host's engine on the shared Temporal server, for tests of what it asks of Temporal."""

from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest
from tests.support.host import EngineHost, engine_host


@pytest.fixture
async def engine(temporal: str) -> AsyncGenerator[EngineHost]:
    """Threads, journals, sessions and workers on a task queue of the test's own."""
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}") as host:
        yield host
