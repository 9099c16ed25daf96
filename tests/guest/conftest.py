"""A runner under test runs in the test's own process: what it sets for its one run must not outlive the test."""

import pytest

from agentvisor.client import conversation


@pytest.fixture(autouse=True)
def no_conversation_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_current", [])
