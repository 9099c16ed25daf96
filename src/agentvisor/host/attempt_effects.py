"""Effects and questions of one live attempt: checked at the door, journalled, and answered once they are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import time
from uuid import uuid4

from agentvisor.core import effects
from agentvisor.core.effects import MAX_KEY, By, Effect, EffectState, ForgetEffect, Place
from agentvisor.core.errors import Conflict, InvalidInput
from agentvisor.core.ids import RunId
from agentvisor.core.interrupts import Interrupt, Note, Report, StillWaiting, renewed
from agentvisor.core.questions import Answer, Ask, Question
from agentvisor.core.records import Operation
from agentvisor.core.thread import Thread
from agentvisor.host.door import Door
from agentvisor.protocol.effects import effect_to_message, place_of, questions_to_message
from agentvisor.protocol.interrupts import interrupt_from_message, terms_from_message
from agentvisor.protocol.v1 import run_pb2, store_pb2

CHECKPOINT_SECONDS = 30.0
"""How long an effect waits for the checkpoint that its task begins from, which is on its way as a rule."""

_MAX_SCOPE = 8_192
MAX_INTERRUPT_ID = 1_024


class AttemptEffects:
    """The part of an attempt's store that `agentvisor.once` and `agentvisor.interrupt` speak with."""

    def __init__(self, thread: Thread, log: Callable[[list[Operation]], asyncio.Future[None]], door: Door) -> None:
        self._thread = thread
        self._log = log
        self._door = door
        self._came = asyncio.Event()

    def checkpoint_came(self) -> None:
        """A checkpoint was logged: what waits for it looks again."""
        self._came.set()
        self._came = asyncio.Event()

    async def effect(self, asked: store_pb2.EffectRequest) -> store_pb2.StoreReply:
        """Change the ledger as far as that is allowed; answered with the entry as it is then."""
        place = _checked(place_of(asked))
        ledger = self._thread.store.effects
        if asked.WhichOneof("kind") == "forget":
            if ledger.get(place.scope, place.key) is not None:
                await self._log([ForgetEffect(place.scope, place.key)])
            return store_pb2.StoreReply(effect=store_pb2.EffectReply())
        if asked.WhichOneof("kind") == "intend":
            await self._until_stored(place)
        known = ledger.get(place.scope, place.key)
        changed = self._changed(known, place, asked)
        if changed is not None:
            self._door.check_effect(changed, known)
            await self._log([changed])
        entry = changed or known
        fresh = changed is not None and changed.state is EffectState.INTENDED
        message = effect_to_message(entry) if entry is not None else None
        shared = ledger.shares_questions(place.scope, place.key)
        return store_pb2.StoreReply(effect=store_pb2.EffectReply(effect=message, fresh=fresh, shared=shared))

    def _changed(self, known: Effect | None, place: Place, asked: store_pb2.EffectRequest) -> Effect | None:
        match asked.WhichOneof("kind"):
            case "intend":
                return effects.intended(known, place, self._by(), again=asked.intend, answers=asked.answers)
            case "result" | "unkept":
                return effects.done(
                    known, place, self._by(), result=asked.result, unkept=asked.unkept, answers=asked.answers
                )
            case "failure":
                told = asked.failure
                return effects.failed(known, error_type=told.type, error_message=told.message)
            case "asked":
                return effects.noted(known, asked=True)
            case "awaited":
                return effects.noted(known, awaited=True)
            case kind:
                raise InvalidInput(f"this host does not know the effect request {kind}: it may be older than the SDK")

    async def _until_stored(self, place: Place) -> None:
        """Wait for the checkpoint that the task begins from: without it, the task would begin from another one.

        In the log it is before the intent, and so durable before the effect happens.
        """
        if place.checkpoint_id is None:
            return
        checkpoints = self._thread.store.checkpoints
        try:
            async with asyncio.timeout(CHECKPOINT_SECONDS):
                while place.checkpoint_id not in checkpoints.get(place.namespace, {}):
                    await self._came.wait()
        except TimeoutError:
            raise Conflict(
                f"effect {place.key!r}: checkpoint {place.checkpoint_id}, from which its task runs, has not been "
                f"stored for {CHECKPOINT_SECONDS:.0f} seconds, so that the task would not be known again after a "
                'restart: run the graph with durability="sync" or "async", with AgentVisorCheckpointer'
            ) from None

    async def question(self, asked: store_pb2.QuestionRequest) -> store_pb2.StoreReply:
        """Ask, answer or read; answered with all of the thread's questions."""
        questions = self._thread.store.questions
        match asked.WhichOneof("kind"):
            case "ask":
                one = asked.ask
                if not any(known.name == one.name for known in questions.asked.values()):
                    by = self._by()
                    question = Question(
                        uuid4().hex, one.name, one.kind, one.value, by.now_ms,
                        terms=terms_from_message(one.terms, by.now_ms), run_id=by.run_id,
                    )  # fmt: skip
                    ask = Ask(question, b"" if questions.asked else self._input())
                    self._door.check_question(ask)
                    await self._log([ask])
            case "answer":
                answer = Answer(asked.answer.id, asked.answer.answer, self._by().run_id)
                known = questions.asked.get(answer.id)
                if known is None or (known.answer is not None and known.answered_by != answer.run_id):
                    raise Conflict(f"question {answer.id[:80]!r} does not wait for an answer (any more)")
                self._door.check_answer(answer)
                await self._log([answer])
            case "report":
                await self._report(asked.report)
            case "note":
                await self._note(asked.note)
            case "still_waiting":
                await self._keep(asked.still_waiting.ids)
            case _:
                pass
        return store_pb2.StoreReply(questions=questions_to_message(questions))

    async def _report(self, asked: store_pb2.Interrupts) -> None:
        interrupts = tuple(map(self._recorded, asked.reported))
        if len({one.id for one in interrupts}) < len(interrupts) or not all(one.id for one in interrupts):
            raise InvalidInput("interrupts that wait need ids of their own", field="id")
        known = self._thread.store.interrupts
        active = self._thread.active
        run = self._thread.runs.get(active.run_id) if active is not None else None
        report = renewed(known.reported, Report(interrupts, asked.takes_input), run.spec.answers if run else ())
        if not interrupts and not known.reported and not known.forgotten:
            return  # nothing waits, as before
        self._door.check_report(report)
        await self._log([report, *self._still_waiting(one.id for one in interrupts)])

    async def _keep(self, ids: Iterable[str]) -> None:
        if kept := self._still_waiting(ids):
            await self._log(kept)

    def _still_waiting(self, ids: Iterable[str]) -> list[Operation]:
        """None where nothing was noted, as a rule."""
        return [StillWaiting(frozenset(ids))] if self._thread.store.interrupts.noted else []

    async def _note(self, asked: store_pb2.Interrupt) -> None:
        if not asked.id:
            raise InvalidInput("an interrupt needs an id", field="id")
        if asked.id not in self._thread.store.interrupts.noted:
            note = Note(self._recorded(asked))
            self._door.check_report(Report((note.interrupt,), takes_input=True))
            await self._log([note])

    def _recorded(self, asked: store_pb2.Interrupt) -> Interrupt:
        """What a guest says, with what the host knows: when that was, and in which run."""
        if len(asked.id) > MAX_INTERRUPT_ID:
            raise InvalidInput(f"the id of an interrupt has at most {MAX_INTERRUPT_ID} characters", field="id")
        by = self._by()
        one = interrupt_from_message(asked)
        return replace(one, terms=terms_from_message(asked.terms, by.now_ms), created_at_ms=by.now_ms, run_id=by.run_id)

    def _input(self) -> bytes:
        active = self._thread.active
        run = self._thread.runs.get(active.run_id) if active is not None else None
        return run_pb2.RunSpec.FromString(run.spec.body).input if run is not None else b""

    def _by(self) -> By:
        active = self._thread.active
        run_id, attempt = active.id if active is not None else (RunId(""), 0)
        return By(run_id, attempt, int(time() * 1000))


def _checked(place: Place) -> Place:
    """A guest's words, which may be anything."""
    if not 0 < len(place.key) <= MAX_KEY:
        raise InvalidInput(f"the key of an effect has 1 to {MAX_KEY} characters, not {len(place.key)}", field="key")
    if len(place.scope) + len(place.namespace) > _MAX_SCOPE:
        raise InvalidInput(f"the scope of effect {place.key!r} is over {_MAX_SCOPE} characters", field="scope")
    return place
