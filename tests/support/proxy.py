"""A gRPC proxy before Temporal, in which a test holds requests back, loses replies, sends twice, and cuts the line.

It passes raw bytes of unary calls (Temporal's API has no others; long polls are slow unary calls).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import cast

import grpc
import grpc.aio
from temporalio.api.workflowservice.v1 import RecordActivityTaskHeartbeatRequest

from agentvisor.protocol.v1.journal_pb2 import Log

HEARTBEAT = "RecordActivityTaskHeartbeat"
SIGNAL = "SignalWorkflowExecution"
COMPLETED = "RespondActivityTaskCompleted"
CANCELED = "RespondActivityTaskCanceled"
FAILED = "RespondActivityTaskFailed"
POLL_ACTIVITY = "PollActivityTaskQueue"
QUERY = "QueryWorkflow"
DESCRIBE = "DescribeWorkflowExecution"
LIST = "ListWorkflowExecutions"

_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_BROKEN = (grpc.StatusCode.UNAVAILABLE, "the test broke the line")
_FOR_EVER = 1_000_000


class _Action(Enum):
    HOLD = "hold"
    REFUSE = "refuse"
    DROP_REPLY = "drop reply"
    HOLD_REPLY = "hold reply"
    TWICE = "twice"
    STALE = "stale"


def _any(_request: bytes) -> bool:
    return True


def heartbeat_of(attempt: int) -> Callable[[bytes], bool]:
    """Heartbeats of an attempt of that number, by the log that they carry."""

    def matches(request: bytes) -> bool:
        details = RecordActivityTaskHeartbeatRequest.FromString(request).details
        return Log.FromString(details.payloads[0].data).attempt == attempt

    return matches


def heartbeat_of_the_first() -> Callable[[bytes], bool]:
    """Heartbeats of whichever attempt sends one first, by its activity: its heir on the same host is heard."""
    first = list[bytes]()

    def matches(request: bytes) -> bool:
        token = RecordActivityTaskHeartbeatRequest.FromString(request).task_token
        first[:] = first or [token]
        return token == first[0]

    return matches


@dataclass(eq=False)
class Rule:
    """What happens to the next matching requests; `caught` counts them."""

    method: str
    action: _Action
    left: int
    matches: Callable[[bytes], bool] = _any
    caught: int = 0
    messages: list[bytes] = field(default_factory=list[bytes])
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """A held reply goes out."""
    answers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    """What stale requests are answered."""
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_caught(self, *, seconds: float = 15.0) -> None:
        """Return once a request has met this rule."""
        async with asyncio.timeout(seconds):
            await self._came.wait()

    def lift(self) -> None:
        """No further request meets this rule."""
        self.left = 0

    def catch(self, message: bytes) -> None:
        self.left -= 1
        self.caught += 1
        self.messages.append(message)
        self._came.set()


class TemporalProxy:
    """Listens at `address`; without rules it is transparent."""

    def __init__(self, target: str) -> None:
        self.address = ""
        self.seen: Counter[str] = Counter()
        """Requests by method."""
        self.delay = 0.0
        """Seconds before each request goes on."""
        self._target = target
        self._rules: list[Rule] = []
        self._cut = asyncio.Event()
        self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._late: list[tuple[str, bytes, tuple[tuple[str, str | bytes], ...]]] = []

    def hold(self, method: str, *, times: int = 1, matches: Callable[[bytes], bool] = _any) -> Rule:
        """Keep matching requests back, their senders are told UNAVAILABLE; `deliver_held` sends them on."""
        return self._add(Rule(method, _Action.HOLD, times, matches))

    def refuse(self, method: str, *, times: int = _FOR_EVER, matches: Callable[[bytes], bool] = _any) -> Rule:
        """Tell UNAVAILABLE, and never deliver."""
        return self._add(Rule(method, _Action.REFUSE, times, matches))

    def drop_reply(self, method: str, *, times: int = 1, matches: Callable[[bytes], bool] = _any) -> Rule:
        """Deliver, and tell UNAVAILABLE all the same; `matches` looks at the reply."""
        return self._add(Rule(method, _Action.DROP_REPLY, times, matches))

    def hold_reply(self, method: str, *, times: int = 1, matches: Callable[[bytes], bool] = _any) -> Rule:
        """Deliver, and keep the answer until it is `released`; `matches` looks at the reply."""
        return self._add(Rule(method, _Action.HOLD_REPLY, times, matches))

    def twice(self, method: str, *, times: int = 1, matches: Callable[[bytes], bool] = _any) -> Rule:
        """Deliver, then deliver once more; the sender gets the first answer."""
        return self._add(Rule(method, _Action.TWICE, times, matches))

    def stale(self, method: str, *, matches: Callable[[bytes], bool] = _any) -> Rule:
        """Answer what the same request was answered the first time, as a list does that lags behind."""
        return self._add(Rule(method, _Action.STALE, _FOR_EVER, matches))

    async def deliver_held(self) -> list[grpc.StatusCode]:
        """Send on all that is held, in order; how the server answered each."""
        answers: list[grpc.StatusCode] = []
        held, self._late = self._late, []
        for method, request, metadata in held:
            try:
                await self._forward(method, request, metadata, 10)
                answers.append(grpc.StatusCode.OK)
            except grpc.aio.AioRpcError as error:
                answers.append(error.code())
        return answers

    def cut(self) -> None:
        """An outage: everything fails, what is under way included."""
        self._cut.set()

    def mend(self) -> None:
        """Nothing is done to what comes from now on; replies that were held go out."""
        self._cut.clear()
        self.delay = 0.0
        for rule in self._rules:
            rule.lift()
            rule.released.set()

    def _add(self, rule: Rule) -> Rule:
        self._rules.append(rule)
        return rule

    def _rule_for(self, method: str, message: bytes, *, reply: bool) -> Rule | None:
        for rule in self._rules:
            on_reply = rule.action in {_Action.DROP_REPLY, _Action.HOLD_REPLY}
            if rule.method == method and rule.left > 0 and on_reply == reply and rule.matches(message):
                rule.catch(message)
                return rule
        return None

    # --- gRPC --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen: where it has listened before, or on any free port."""
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Everything(self._handle),))
        port = self._server.add_insecure_port(self.address or "127.0.0.1:0")
        await self._server.start()
        self.address = f"127.0.0.1:{port}"

    async def restart(self, *, after: float) -> None:
        """Listen no more, its connections included, and listen again after so many seconds."""
        await self._server.stop(None)
        await asyncio.sleep(after)
        await self.start()

    async def stop(self) -> None:
        await self._server.stop(None)
        await self._channel.close()

    async def _handle(self, path: str, request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        method = path.rpartition("/")[2]
        self.seen[method] += 1
        if self._cut.is_set():
            await context.abort(*_BROKEN)
        metadata = tuple(
            (key, value)
            for key, value in (context.invocation_metadata() or ())
            if not key.startswith(("grpc-", ":")) and key not in {"user-agent", "content-type", "te"}
        )
        await asyncio.sleep(self.delay)
        rule = self._rule_for(method, request, reply=False)
        if rule is not None and rule.action is _Action.HOLD:
            self._late.append((path, request, metadata))
        if rule is not None and rule.action in {_Action.HOLD, _Action.REFUSE}:
            await context.abort(*_BROKEN)
        if rule is not None and rule.action is _Action.STALE and request in rule.answers:
            return rule.answers[request]
        try:
            reply = await self._unless_cut(self._forward(path, request, metadata, context.time_remaining()))
        except grpc.aio.AioRpcError as error:
            # What the server says of an error (a refused update, a failed query) is in the trailing metadata.
            trailing = cast("tuple[tuple[str, str | bytes], ...]", tuple(error.trailing_metadata() or ()))
            details = tuple((key, value) for key, value in trailing if key == "grpc-status-details-bin")
            await context.abort(error.code(), error.details() or "", details)
        after = None if reply is None else self._rule_for(method, reply, reply=True)
        if after is not None and after.action is _Action.HOLD_REPLY:
            await after.released.wait()
        if reply is None or (after is not None and after.action is _Action.DROP_REPLY):
            await context.abort(*_BROKEN)
        if rule is not None and rule.action is _Action.TWICE:
            self._late.append((path, request, metadata))
            await self.deliver_held()
        assert reply is not None
        if rule is not None and rule.action is _Action.STALE:
            rule.answers[request] = reply
        return reply

    async def _unless_cut(self, call: "asyncio.Future[bytes] | grpc.aio.UnaryUnaryCall[bytes, bytes]") -> bytes | None:
        cut = asyncio.ensure_future(self._cut.wait())
        reply = asyncio.ensure_future(_awaited(call))
        try:
            await asyncio.wait([cut, reply], return_when=asyncio.FIRST_COMPLETED)
            return await reply if reply.done() else None
        finally:
            cut.cancel()
            reply.cancel()

    def _forward(
        self, path: str, request: bytes, metadata: tuple[tuple[str, str | bytes], ...], timeout: float | None
    ) -> "grpc.aio.UnaryUnaryCall[bytes, bytes]":
        return self._channel.unary_unary(path)(request, timeout=timeout, metadata=metadata)  # type: ignore[return-value]


async def _awaited(call: "asyncio.Future[bytes] | grpc.aio.UnaryUnaryCall[bytes, bytes]") -> bytes:
    return await call


class _Everything(grpc.GenericRpcHandler):
    def __init__(self, handle: Callable[[str, bytes, "grpc.aio.ServicerContext[bytes, bytes]"], object]) -> None:
        self._handle = handle

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        path = handler_call_details.method

        async def unary(request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> object:
            return await self._handle(path, request, context)  # type: ignore[misc]

        return grpc.unary_unary_rpc_method_handler(unary)


@asynccontextmanager
async def proxy_to(target: str) -> AsyncGenerator[TemporalProxy]:
    """A proxy while the context lasts."""
    proxy = TemporalProxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
