"""The journal of one attempt: group commits by heartbeat, folds by signal, and acknowledgements that always hold.

Capitals in comments name the rules of the journal protocol (docs/journal.md). One commit at a time is in flight;
what is appended meanwhile goes with the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from agentvisor.core.errors import Fenced
from agentvisor.core.ids import AttemptId
from agentvisor.core.journal import Stretch, WriteAheadLog
from agentvisor.host.attempt_report import name_of
from agentvisor.host.journal_calls import Beat, JournalCalls, Outcome
from agentvisor.host.metrics import (
    COMMIT_OPERATIONS,
    COMMIT_SECONDS,
    FOLDED_BYTES,
    FOLDS,
    HEARTBEATS,
    LOG_BYTES,
    WRITE_SECONDS,
)
from agentvisor.protocol.v1 import journal_pb2, run_pb2

FOLD_BYTES = 1_000_000
"""Of one signal: far below Temporal's 2 MB, at which a log is lost without an error."""
HEARTBEAT_BYTES = 256_000
"""Of the log that a heartbeat or a closing report carries; what is larger is folded first."""
_RETRY = 0.05
_RETRY_MOST = 1.0
_ASK = 0.2
_ASK_MOST = 1.0
_BEATS = {outcome: HEARTBEATS.labels(outcome.value) for outcome in Outcome}
_FOLDS = {outcome: FOLDS.labels(outcome.value) for outcome in Outcome}


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """`temporal.*`; seconds and bytes."""

    fold_threshold: int = 24_576
    fold_quiet: float = 1.0
    fold_age: float = 3.0
    linger: float = 0.001
    idle_heartbeat: float = 1.0


class Urgency(Enum):
    """How soon an operation wants its commit."""

    LAZY = "lazy"
    """With whatever comes next, at the latest when a quiet log is folded."""
    SOON = "soon"
    """Others may join within the linger."""
    NOW = "now"


class Journal:
    """An attempt's write-ahead log and the one task that commits it."""

    def __init__(
        self,
        attempt: AttemptId,
        token: bytes,
        calls: JournalCalls,
        settings: JournalSettings,
        *,
        host_id: str,
        now_ms: Callable[[], int],
    ) -> None:
        self.attempt = attempt
        self.log = WriteAheadLog()
        self.cancel_seen = asyncio.Event()
        """Temporal asked for the attempt's end under the present token; ask the workflow why."""
        self.commits = self.folds = 0
        self._token: bytes | None = token
        self._calls = calls
        self._settings = settings
        self._host_id = host_id
        self._now_ms = now_ms
        self._started_at_ms = self._beat_at_ms = now_ms()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[int, asyncio.Future[None], float]] = deque()
        self._durable_seq = 0
        self._work = asyncio.Event()
        self._urgent = asyncio.Event()
        self._token_came = asyncio.Event()
        self._give_to = ""
        self._committing = asyncio.Lock()
        self._uncertain = False
        self._closing = False
        self._fenced: asyncio.Future[None] = self._loop.create_future()
        self._oldest = self._newest = self._last_beat = 0.0

    # --- writing ---------------------------------------------------------------------------------------------------

    def append(self, entries: list[bytes], urgency: Urgency) -> asyncio.Future[None]:
        """Log operations, in order; the future ends when they are durable, or with `Fenced`."""
        durable: asyncio.Future[None] = self._loop.create_future()
        if self._fenced.done() or self._closing:
            durable.set_exception(self._fenced_error())
            durable.exception()
            return durable
        now = self._loop.time()
        if not self.log.entries:
            self._oldest = now
        self._newest = now
        for entry in entries:
            self.log.append(entry)
        self._waiting.append((self.log.last_seq, durable, now))
        if urgency is not Urgency.LAZY:
            self._work.set()
        if urgency is Urgency.NOW:
            self._urgent.set()
        return durable

    async def run(self) -> None:
        """Commit until the journal is closed or the attempt is lost."""
        try:
            pause = _RETRY
            while not self.is_closing:
                async with self._committing:
                    if self._give_to:
                        await self._give_back()
                    sure = await self._commit()
                pause = _RETRY if sure else min(pause * 2, _RETRY_MOST)
                await self._next_commit(0 if sure else pause)
        except Exception:
            self.fence()  # a defect: nobody may wait for acknowledgements that cannot come
            raise

    async def _next_commit(self, pause: float) -> None:
        if pause:
            await asyncio.sleep(pause)
            return
        try:
            async with asyncio.timeout(self._until_upkeep()):
                await self._work.wait()
        except TimeoutError:
            return
        if not self._urgent.is_set() and self._settings.linger:
            try:
                async with asyncio.timeout(self._settings.linger):
                    await self._urgent.wait()
            except TimeoutError:
                return

    def _until_upkeep(self) -> float:
        """Seconds until a heartbeat or a fold is due although nothing was appended."""
        settings, now = self._settings, self._loop.time()
        due = self._last_beat + settings.idle_heartbeat
        if self.log.entries:
            due = min(due, self._newest + settings.fold_quiet, self._oldest + settings.fold_age)
        return max(0.0, due - now)

    async def _commit(self) -> bool:
        """One group commit; whether its outcome is known."""
        token = await self._held_token()
        if token is None:
            return True
        began, size = self._loop.time(), self.log.size
        if self._fold_due() and not await self._fold(token, self.log.last_seq):
            return False
        self._work.clear()
        self._urgent.clear()
        carried = self._carried()
        beat = await self._beat(token, carried)
        if token is not self._token:  # OLDTOKEN
            return True
        self._last_beat = self._loop.time()
        match beat.outcome:
            case Outcome.GONE:
                self.fence()
                return True
            case Outcome.UNKNOWN:
                self._uncertain = True  # UNCFOLD
                self._work.set()
                return False
            case Outcome.DONE:
                self.commits += 1
                # FENCE: what was folded is answered only now, after a heartbeat that the server took.
                self._acknowledge(self.log.first_seq - 1 if self._uncertain else carried.last_seq, began, size)
                if self.log.last_seq > carried.last_seq or (self._uncertain and self.log.entries):
                    self._work.set()
                    self._urgent.set()
                if beat.cancel_requested:
                    self.cancel_seen.set()
                return True

    def _fold_due(self) -> bool:
        if not self.log.entries:
            return False
        settings, now = self._settings, self._loop.time()
        return (
            self._uncertain
            or self.log.size > min(settings.fold_threshold, HEARTBEAT_BYTES)
            or now - self._newest >= settings.fold_quiet
            or now - self._oldest >= settings.fold_age
        )

    async def _fold(self, token: bytes, up_to: int) -> bool:
        """Send the log to the workflow, in order; False where that is not known to be done."""
        for stretch in list(self.log.stretches(up_to, FOLD_BYTES)):
            # It acknowledges nothing by itself, and may come after the attempt's end: no sign that the attempt lives.
            message = self._message(stretch, self._beat_at_ms).SerializeToString()
            outcome = await self._calls.fold(message)
            _FOLDS[outcome].inc()
            FOLDED_BYTES.observe(len(message))
            if outcome is Outcome.GONE:
                self.fence()
                return False
            if outcome is Outcome.UNKNOWN:  # KEEPFOLDLOG: the next commit sends the same log, or a longer one
                self._work.set()
                await self._keep_alive(token)
                return False
            self.folds += 1
            self.log.trim(stretch.last_seq)
            self._oldest = self._loop.time()
        return True

    async def _keep_alive(self, token: bytes) -> None:
        """A heartbeat that acknowledges nothing: folds fail, the attempt still lives."""
        beat = await self._beat(token, self._carried())
        if token is not self._token:
            return
        if beat.outcome is Outcome.GONE:
            self.fence()
        elif beat.outcome is Outcome.UNKNOWN:
            self._uncertain = True
        elif beat.cancel_requested:
            self.cancel_seen.set()

    def _carried(self) -> Stretch:
        """What a heartbeat or a report holds: the log's first part, nothing where its first entry is too large.

        A later one holds at least what an earlier one held, or it was folded: so none takes back an acknowledged one.
        """
        first = next(self.log.stretches(self.log.last_seq, HEARTBEAT_BYTES), None)
        if first is None or len(first.entries[0]) > HEARTBEAT_BYTES:
            return Stretch(self.log.first_seq, ())
        return first

    def _acknowledge(self, up_to: int, began: float, size: int) -> None:
        """Answer what waits. `began`: when the commit did, with so many bytes in the log."""
        while self._waiting and self._waiting[0][0] <= up_to:
            _, durable, logged_at = self._waiting.popleft()
            if not durable.done():
                durable.set_result(None)
            WRITE_SECONDS.observe(self._loop.time() - logged_at)
        if up_to > self._durable_seq:  # else a heartbeat without news
            COMMIT_OPERATIONS.observe(up_to - self._durable_seq)
            COMMIT_SECONDS.observe(self._loop.time() - began)
            LOG_BYTES.observe(size)
            self._durable_seq = up_to

    async def _beat(self, token: bytes, carried: Stretch) -> Beat:
        at_ms = self._now_ms()
        beat = await self._calls.heartbeat(token, self._message(carried, at_ms).SerializeToString())
        _BEATS[beat.outcome].inc()
        if beat.outcome is Outcome.DONE and token is self._token:
            self._beat_at_ms = at_ms
        return beat

    def _message(self, stretch: Stretch, committed_at_ms: int) -> journal_pb2.Log:
        return journal_pb2.Log(
            run_id=self.attempt.run_id,
            attempt=self.attempt.attempt,
            first_seq=stretch.first_seq,
            entries=stretch.entries,
            committed_at_ms=committed_at_ms,
            host_id=self._host_id,
            started_at_ms=self._started_at_ms,
        )

    # --- losing and changing the token -------------------------------------------------------------------------------

    def fence(self) -> None:
        """The attempt is lost: nothing that waits is acknowledged, nothing more is taken."""
        if not self._fenced.done():
            self._fenced.set_result(None)
        for _, durable, _ in self._waiting:
            if not durable.done():
                durable.set_exception(self._fenced_error())
                durable.exception()
        self._waiting.clear()
        self._work.set()
        self._token_came.set()

    @property
    def is_fenced(self) -> bool:
        return self._fenced.done()

    @property
    def last_seq(self) -> int:
        """Of the operation that was appended last."""
        return self.log.last_seq

    @property
    def is_closing(self) -> bool:
        """Nothing more is taken: the report is on its way, or the attempt is lost."""
        return self._closing or self._fenced.done()

    async def until_fenced(self) -> None:
        await asyncio.shield(self._fenced)

    def _fenced_error(self) -> Fenced:
        run_id, attempt = self.attempt
        return Fenced(
            f"attempt {attempt} of run {run_id} has ended: nothing that it writes counts any more", run_id=run_id
        )

    async def _held_token(self) -> bytes | None:
        """The token, once there is one; None where the attempt turns out to be lost."""
        pause = _ASK
        while self.waits_for_token:
            self._token_came.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._token_came.wait()
            except TimeoutError:
                pause = min(pause * 2, _ASK_MOST)
                known = await self._calls.read_attempt(self.attempt)
                if known is not None and not known.current and self.waits_for_token:
                    self.fence()  # GAPKILL
        return None if self._fenced.done() else self._token

    def attach(self, token: bytes) -> None:
        """A new token for the same attempt, after continue-as-new; the log is sent again under it (KEEPLOG)."""
        self._token = token
        self._uncertain = False
        self._give_to = ""
        self.cancel_seen.clear()
        self._last_beat = 0.0
        self._token_came.set()
        self._work.set()
        self._urgent.set()

    @property
    def waits_for_token(self) -> bool:
        return self._token is None and not self._fenced.done()

    async def hand_over(self, host_queue: str) -> None:
        """Give the token back for the workflow's next execution; return with its successor, or fenced.

        The giving back is the commit task's: it must not be left halfway where the caller is cancelled.
        """
        self._give_to = host_queue
        self._work.set()
        self._urgent.set()
        while self._give_to and not self._fenced.done():
            self._token_came.clear()
            await self._token_came.wait()

    async def _give_back(self) -> None:
        token = self._token
        if token is None:
            return
        self._token = None
        close = journal_pb2.AttemptClose(
            ending=run_pb2.ENDING_HANDOVER,
            rest=self._message(self._carried(), self._now_ms()),
            host_queue=self._give_to,
        )
        outcome = await self._calls.report_cancellation(token, close.SerializeToString())
        while outcome is Outcome.UNKNOWN and self.waits_for_token:
            await asyncio.sleep(_RETRY)
            outcome = await self._calls.report_cancellation(token, close.SerializeToString())
        # HANDUNC: gone, after a report of unknown outcome or not, does not tell whether it landed: wait or ask.
        await self._held_token()

    # --- ending ------------------------------------------------------------------------------------------------------

    async def close(self, close: journal_pb2.AttemptClose) -> bool:
        """Report the attempt's end with the rest of the log; whether Temporal took it, as far as is known."""
        self._closing = True
        self._work.set()
        async with self._committing:
            token = await self._held_token()
            pause, began, size = _RETRY, self._loop.time(), self.log.size
            while token is not None and self.log.size > HEARTBEAT_BYTES and not self._fenced.done():
                if not await self._fold(token, self.log.last_seq):
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _RETRY_MOST)
            if token is None or self._fenced.done():
                self.fence()
                return False
            rest = self.log.all()
            close.rest.CopyFrom(self._message(rest, self._now_ms()))
            outcome = await self._report(token, close)
            while outcome is Outcome.UNKNOWN:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _RETRY_MOST)
                outcome = await self._report(token, close)
            if outcome is Outcome.DONE:
                self._acknowledge(rest.last_seq, began, size)
            self.fence()
            return outcome is Outcome.DONE

    async def _report(self, token: bytes, close: journal_pb2.AttemptClose) -> Outcome:
        encoded = close.SerializeToString()
        match close.ending:
            case run_pb2.ENDING_COMPLETED | run_pb2.ENDING_PAUSED:
                return await self._calls.complete(token, encoded)
            case run_pb2.ENDING_CANCELLED | run_pb2.ENDING_HOST_STOPPED:
                # Temporal takes this only where it asked for a cancel; complete is always taken.
                if self.cancel_seen.is_set():
                    return await self._calls.report_cancellation(token, encoded)
                return await self._calls.complete(token, encoded)
            case _:
                name = name_of(close.ending)
                return await self._calls.fail(token, encoded, close.error_type or name, close.error_message or name)
