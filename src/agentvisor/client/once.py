"""The law of `agentvisor.once`, without I/O: intent, effect, result; and what follows from an unknown outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, cast

from agentvisor.client import effect_requests as requests
from agentvisor.client import live_effects
from agentvisor.client.conversation import Conversation, Paused, inside, within
from agentvisor.client.steps import Invoke, Step, Steps, Wait
from agentvisor.client.strict_json import dump
from agentvisor.client.tasks import Task
from agentvisor.core.effects import Effect, EffectState, Place
from agentvisor.core.errors import AgentVisorError, InvalidInput, UnknownOutcome
from agentvisor.protocol.v1.store_pb2 import StoreReply

KIND = "effect_unknown"
"""Of the question that a person is asked."""

HOW = 'answer {"done": what the effect returned} where it happened, {"not_done": true} where it did not'
HOW_NAMED = (
    'answer {"effect": its id, "done": what the effect returned} where it happened, '
    '{"effect": its id, "not_done": true} where it did not'
)
"""Where the task has several effects: an answer counts for the one that it names."""

OnUnknown = Literal["ask", "retry", "fail"]


class NotDone:
    """The effect did not happen."""

    def __repr__(self) -> str:
        return "NOT_DONE"


NOT_DONE = NotDone()
"""What a reconcile function returns where the effect did not happen."""


@dataclass(slots=True)
class Once:
    """One call of `once`."""

    place: Place
    function: Callable[[], object]
    reconcile: Callable[[], object] | None
    on_unknown: OnUnknown
    task: Task | None
    conversation: Conversation | None
    awaited: bool = False
    """The function is known to give something to be awaited, although it does not look like it."""
    _shared: bool = field(default=False, init=False)
    """Other effects of the task ask, too: answers are told apart by the effect that they name."""
    _cannot_tell: bool = field(default=False, init=False)
    """The function has said once that it does not know whether it happened."""
    _used: int = field(default=0, init=False)
    """Interrupts of the task that this effect has used up."""

    @property
    def _name(self) -> live_effects.Name:
        return (self.place.scope, self.place.key)

    @property
    def _named_only(self) -> bool:
        return self.task is not None and self._shared

    def steps(self) -> Steps:
        """The call, from waiting for another with the same key to its result."""
        name = self._name
        if name in within():
            raise InvalidInput(f"effect {self.place.key!r} is called inside itself", field="key")
        while (other := live_effects.claim(name)) is not None:
            yield Wait(other, name)
        try:
            return (yield from self._claimed())
        finally:
            live_effects.release(name)

    def _claimed(self) -> Steps:
        reply = yield from self._intend(again=False)
        effect = requests.entry_of(reply)
        self._shared = reply.effect.shared
        if effect is None:
            raise InvalidInput(f"effect {self.place.key!r}: the host has not recorded it")
        if effect.state is EffectState.DONE:
            self._replay(effect)
            return self._result_of(effect)
        if reply.effect.fresh:
            return (yield from self._run(effect))
        return (yield from self._resolve(effect))

    # --- the effect ------------------------------------------------------------------------------------------------

    def _intend(self, *, again: bool) -> Generator[Step, object, StoreReply]:
        # Cancelled meanwhile: it may be recorded, or an older one be there. Unknown, whoever comes next.
        return cast("StoreReply", (yield requests.intend(self.place, again=again, answers=self._used)))

    def _run(self, effect: Effect) -> Steps:
        """Make it happen: its intent is durable."""
        counts: list[Callable[[], int]] = []

        @contextmanager
        def around() -> Generator[None]:
            with ExitStack() as stack:
                stack.enter_context(inside(self._name))
                if self.task is not None:
                    counts.append(stack.enter_context(self.task.counting()))
                yield

        try:
            self._replay(effect)
            result = yield Invoke(self.function, around, requests.awaited(self.place))
        except (Exception, Paused, BaseExceptionGroup) as error:
            causes = list(_causes(error))
            if any(isinstance(one, UnknownOutcome) for one in causes):
                # It cannot tell itself. A second time nobody is asked to try again: that would have no end.
                if self._cannot_tell or (self.on_unknown == "fail" and self.reconcile is None):
                    raise
                self._cannot_tell = True
                return (yield from self._resolve(effect))
            if all(isinstance(one, Exception | Paused) for one in causes):
                yield requests.failed(self.place, error)
            raise
        self._used += sum(count() for count in counts)
        return (yield from self._finish(result))

    def _finish(self, result: object) -> Steps:
        """It has happened: record what it returned."""
        try:
            data = dump(result, f"the result of effect {self.place.key!r}")
            yield requests.done(self.place, data, self._used)
        except AgentVisorError as error:
            if error.code in ("fenced", "unavailable", "internal"):
                raise  # nothing can be recorded: its outcome is unknown to whoever comes next
            yield requests.unkept(self.place, error.message, self._used)
            raise
        return json.loads(data)

    def _result_of(self, effect: Effect) -> object:
        self.awaited = effect.awaited
        if effect.unkept:
            raise InvalidInput(f"effect {self.place.key!r} is done, but what it returned was not kept: {effect.unkept}")
        return json.loads(effect.result)

    # --- an unknown outcome ----------------------------------------------------------------------------------------

    def _resolve(self, effect: Effect) -> Steps:
        self.awaited = effect.awaited
        self._replay(effect)
        if effect.asked:  # from then on a person decides: what the person is asked must not depend on the moment
            return (yield from self._ask(effect))
        if self.reconcile is not None:
            try:
                found = yield Invoke(self.reconcile)
            except UnknownOutcome:
                pass
            else:
                if isinstance(found, NotDone):
                    return (yield from self._again())
                return (yield from self._finish(found))
        match self.on_unknown:
            case "retry":
                return (yield from self._again())
            case "fail":
                raise UnknownOutcome(f"{_told(effect)}; {HOW_TO_DECIDE}", key=self.place.key)
            case "ask":
                return (yield from self._ask(effect))

    def _again(self) -> Steps:
        reply = yield from self._intend(again=True)
        effect = requests.entry_of(reply)
        if effect is None or not reply.effect.fresh:
            raise UnknownOutcome(f"effect {self.place.key!r} was decided elsewhere meanwhile", key=self.place.key)
        self.awaited = False
        self._used = effect.answers
        return (yield from self._run(effect))

    def _ask(self, effect: Effect) -> Steps:
        if self.task is None and self.conversation is None:
            raise UnknownOutcome(f"{_told(effect)}; nobody can be asked here: {HOW_TO_DECIDE}", key=effect.place.key)
        if not effect.asked:
            reply = cast("StoreReply", (yield requests.asked(self.place)))
            self._shared = reply.effect.shared
        wrong, number = self._unnamed(effect), 0
        while True:
            answer = yield from self._answer(effect, _question(effect, wrong, named=self._named_only), number)
            wrong = _wrong(answer, effect, named=self._named_only)
            number += 1
            if not wrong:
                break
        given = cast("Mapping[str, object]", answer)
        if "done" in given:
            return (yield from self._finish(given["done"]))
        return (yield from self._again())

    def _unnamed(self, effect: Effect) -> str:
        """Why the last answer that came counts for no effect of the task."""
        last = self.task.answers()[-1:] if self.task is not None and self._shared else []
        names_one = all(isinstance(one, Mapping) and "effect" in one for one in last)
        return "" if names_one else _wrong(last[0], effect, named=True)

    def _answer(self, effect: Effect, question: dict[str, object], number: int) -> Steps:
        if self.task is not None and self._shared:
            answer = _named_answer(self.task, effect) or self.task.ask_last(question)
            self.task.skip()
            self._used += 1
            return answer
        if self.task is not None:
            answer = self.task.ask(question)
            self._used += 1
            return answer
        if self.conversation is None:
            raise UnknownOutcome
        # An answer is about one intent: where the effect is tried again, and lost again, it is asked about again.
        by = effect.by
        name = f"{self.place.scope}{self.place.key}?{by.run_id}.{by.attempt}.{by.now_ms}.{number}"
        asking = self.conversation.asked(name, KIND, dump(question, "the question"))
        return (yield from cast("Steps", asking))

    def _replay(self, effect: Effect) -> None:
        """Use up what this effect has used up before: the interrupts of a task are counted anew each time it runs."""
        while self.task is not None and self._used < effect.answers:
            if self._shared:
                self.task.skip()
            else:
                self.task.ask(_question(effect, "", named=False))
            self._used += 1


HOW_TO_DECIDE = "look whether it happened, give once a reconcile function or another on_unknown, or forget it"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What was raised: of a group, which tasks side by side raise, what each of them has."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _causes(one)


def _told(effect: Effect) -> str:
    by = effect.by
    return (
        f"it is not known whether effect {effect.place.key!r} happened: attempt {by.attempt} of run {by.run_id} was "
        "about to do it and ended before it could say"
    )


def _id_of(effect: Effect) -> str:
    """Names one intent of an effect: what was answered about it says nothing of a later one."""
    place, by = effect.place, effect.by
    named = json.dumps([place.scope, place.key, by.run_id, by.attempt, by.now_ms])
    return hashlib.sha256(named.encode()).hexdigest()[:12]


def _named_answer(task: Task, effect: Effect) -> object:
    """The last answer that names the effect and decides it; None where there is none."""
    for answer in reversed(task.answers()):
        if isinstance(answer, Mapping) and not _wrong(cast("object", answer), effect, named=True):
            task.keep_answers()
            return cast("object", answer)
    return None


def _question(effect: Effect, wrong: str, *, named: bool) -> dict[str, object]:
    by = effect.by
    at = datetime.fromtimestamp(by.now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    question: dict[str, object] = {
        "kind": KIND,
        "key": effect.place.key,
        "effect": _id_of(effect),
        "message": f"{_told(effect)}.",
        "intended_at": at,
        "run_id": by.run_id,
        "attempt": by.attempt,
        "how_to_answer": HOW_NAMED if named else HOW,
    }
    return {**question, "error": wrong} if wrong else question


def _wrong(answer: object, effect: Effect, *, named: bool) -> str:
    """Why an answer decides nothing; empty where it does. `named`: it has to name its effect."""
    key, name, how = effect.place.key, _id_of(effect), HOW_NAMED if named else HOW
    if not isinstance(answer, Mapping):
        return f"the answer was {str(answer)[:100]!r}: {how}"
    given = cast("Mapping[str, object]", answer)
    if given.get("key", key) != key:
        return f"the answer was for effect {str(given.get('key'))[:100]!r}: {how}"
    if given.get("effect", None if named else name) != name:
        return f"the answer was for effect {str(given.get('effect'))[:100]!r}, this is {name!r}: {how}"
    if given.get("not_done") is True and "done" not in given:
        return ""
    if "done" in given and "not_done" not in given:
        return ""
    return f"the answer had {', '.join(sorted(map(str, given)))[:100] or 'nothing'}: {how}"
