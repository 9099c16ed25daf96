"""What the tests of faults share: a proxy before the server, and hosts that go through it."""

from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest
from tests.support.proxy import TemporalProxy, proxy_to


@pytest.fixture
async def proxy(temporal: str) -> AsyncGenerator[TemporalProxy]:
    """Stands between the test's hosts and the shared server."""
    async with proxy_to(temporal) as proxy:
        yield proxy


@pytest.fixture
def queue() -> str:
    """A task queue of the test's own."""
    return f"q-{uuid4().hex[:8]}"
