"""A thread as Temporal's UI and search show it: told again where it has changed, and not at every fold."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from agentvisor.core.owners import keyword
    from agentvisor.core.thread import Thread
    from agentvisor.host.workflow.details import current_details
    from agentvisor.host.workflow.indexing import indexed
    from agentvisor.protocol import reads

STATUS = SearchAttributeKey.for_keyword("AgentVisorStatus")
AGENT = SearchAttributeKey.for_keyword("AgentVisorAgent")
OWNER = SearchAttributeKey.for_keyword("AgentVisorOwner")
METADATA = SearchAttributeKey.for_keyword_list("AgentVisorMetadata")

_WHOLE_FLOATS = "whole-floats-are-searched"
"""Patch: histories without this mark have no terms for floats without a fraction."""
_DESCRIBED_EVERY_MS = 500
"""A run folds many times a second, and to describe a thread of thousands of namespaces takes longer than a fold. The
last fold before a silence comes a second after the one before it (temporal.fold_quiet), and is shown."""


class Showing:
    """What one execution has told of its thread so far."""

    def __init__(self) -> None:
        self._shown: tuple[str, str, list[str]] | None = None
        self._described_at_ms = 0

    def folded(self, thread: Thread, now_ms: int) -> None:
        """A fold has come: describe the thread, unless that was done a moment ago."""
        if now_ms - self._described_at_ms >= _DESCRIBED_EVERY_MS:
            self._describe(thread, now_ms)

    def show(self, thread: Thread, now_ms: int) -> None:
        """Describe the thread, and index it where what is searched for has changed."""
        self._describe(thread, now_ms)
        last = thread.last_agent_run
        status, agent = thread.status.value, last.spec.agent if last else ""
        # A term more can be an upsert more, where metadata changes from 1.0 to 2.0: threads of before go on without.
        floats = reads.has_whole_floats(thread.metadata) and workflow.patched(_WHOLE_FLOATS)
        metadata = reads.keywords(thread.metadata, whole_floats=floats)
        shown = (status, agent, metadata)
        if shown != self._shown:
            self._shown = shown
            named = [AGENT.value_set(agent)] if agent else []
            owned: list[SearchAttributeUpdate[str]] = []
            if thread.owner:
                owners = indexed(OWNER.name, [keyword(thread.owner)])
                owned = [OWNER.value_set(one) for one in owners] or [OWNER.value_unset()]
            workflow.upsert_search_attributes(  # pyright: ignore[reportUnknownMemberType] - Temporal's own signature
                [STATUS.value_set(status), METADATA.value_set(indexed(METADATA.name, metadata)), *named, *owned]
            )

    def _describe(self, thread: Thread, now_ms: int) -> None:
        """No event, and no part of the history: a thread that is replayed has it, too."""
        self._described_at_ms = now_ms
        workflow.set_current_details(current_details(thread))
