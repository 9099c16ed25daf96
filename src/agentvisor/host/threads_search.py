"""Which threads there are, by Temporal's visibility: it lags by milliseconds behind what was acknowledged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.core.errors import InvalidInput, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner, keyword
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.codec.terms import SearchTerms
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.reads import KEYWORDS, metadata_term

_COUNT_TIMEOUT = timedelta(seconds=10)
_FILTER_VALUE = re.compile(r"[^'\"\\\x00-\x1f\ud800-\udfff]{0,200}")


@dataclass(frozen=True, slots=True)
class ThreadSearch:
    """Lists of one caller's threads, in one deployment."""

    client: Client
    task_queue: str
    """Threads of other deployments on the same Temporal are not ours to answer for."""
    owner: Owner
    terms: SearchTerms
    """How owners and metadata stand in the index."""

    async def search(
        self,
        *,
        metadata: Mapping[str, str | float | bool],
        status: str | None,
        ids: Sequence[ThreadId] | None,
        limit: int,
        offset: int,
        agent: str | None = None,
    ) -> list[ThreadId]:
        """Thread ids by Temporal's visibility, newest first; it lags by milliseconds.

        `InvalidInput` for metadata that is too long for the index.
        """
        terms = self._ours()
        if status is not None:
            terms.append(f"AgentVisorStatus = '{_plain(status)}'")
        if agent is not None:
            terms.append(f"AgentVisorAgent = '{_plain(agent)}'")
        if ids is not None:
            terms.append(f"WorkflowId IN ({', '.join(repr(str(one)) for one in ids) or repr('')})")
        if len(metadata) > KEYWORDS:
            raise InvalidInput(f"{len(metadata)} metadata keys: {KEYWORDS} can be searched at most", field="metadata")
        terms += [self.terms.asked("AgentVisorMetadata", _term(key, value)) for key, value in metadata.items()]
        return [one for one, _ in await self._listed(terms, limit + offset)][offset:]

    async def interrupted(self, until: datetime | None, limit: int) -> list[tuple[ThreadId, datetime]]:
        """Threads that wait for an answer, the newest first, each with when its execution began: not after `until`.

        As Temporal's visibility has it, which lags by milliseconds; a compaction makes a thread the newest.
        """
        terms = [*self._ours(), f"AgentVisorStatus = '{ThreadStatus.INTERRUPTED.value}'"]
        if until is not None:
            terms.append(f"StartTime <= '{until.isoformat()}'")
        return await self._listed(terms, limit)

    async def count(self, status: ThreadStatus) -> int:
        """How many threads have a status."""
        terms = [*self._ours(), f"AgentVisorStatus = '{status.value}'"]
        request = CountWorkflowExecutionsRequest(namespace=self.client.namespace, query=" AND ".join(terms))
        try:
            # Not tried again by the SDK: who counts, counts often.
            counted = await self.client.workflow_service.count_workflow_executions(request, timeout=_COUNT_TIMEOUT)
        except RPCError as error:
            raise Unavailable(f"Temporal could not count threads ({error.status.name}): {error.message}") from error
        return counted.count

    def _ours(self) -> list[str]:
        queue = _plain(self.task_queue)
        terms = [f"WorkflowType = '{WORKFLOW}'", "ExecutionStatus = 'Running'", f"TaskQueue = '{queue}'"]
        if self.owner != EVERYONE:
            terms.append(self.terms.asked("AgentVisorOwner", keyword(self.owner)))
        return terms

    async def _listed(self, terms: Sequence[str], limit: int) -> list[tuple[ThreadId, datetime]]:
        try:
            listed = self.client.list_workflows(" AND ".join(terms), limit=limit)
            return [(ThreadId(one.id), one.start_time) async for one in listed]
        except RPCError as error:
            raise Unavailable(f"Temporal could not list threads ({error.status.name}): {error.message}") from error


def _term(key: str, value: str | float | bool) -> str:  # noqa: FBT001 - a value of JSON
    term = metadata_term(key, value)
    if term is None:
        raise InvalidInput(f"metadata {key[:80]!r} cannot be searched: it is too long for the index", field=key)
    return _plain(term)


def _plain(text: str) -> str:
    if not _FILTER_VALUE.fullmatch(text):
        raise InvalidInput(
            f"{text[:80]!r} cannot be searched: no quotes, backslashes or control characters, 200 at most"
        )
    return text
