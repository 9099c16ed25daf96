"""Interrupts of core to messages and back."""

from __future__ import annotations

from collections.abc import Iterable

from agentvisor.core.ids import RunId
from agentvisor.core.interrupts import Interrupt, Interrupts, Note, Report, Seen, StillWaiting, Terms
from agentvisor.protocol.v1 import run_pb2, store_pb2


def terms_to_message(terms: Terms) -> store_pb2.Terms | None:
    """None where there are none: most questions have no room for them."""
    if terms == Terms():
        return None
    return store_pb2.Terms(schema=terms.schema, deadline_ms=terms.deadline_ms, default_answer=terms.default_answer)


def terms_from_message(message: store_pb2.Terms, now_ms: int = 0) -> Terms:
    """The terms; a request's deadline is counted from `now_ms`."""
    deadline_ms = now_ms + message.deadline_after_ms if message.deadline_after_ms else message.deadline_ms
    default = message.default_answer if message.HasField("default_answer") else None
    return Terms(message.schema, deadline_ms, default)


def interrupt_to_message(interrupt: Interrupt) -> store_pb2.Interrupt:
    return store_pb2.Interrupt(
        id=interrupt.id,
        kind=interrupt.kind,
        value=interrupt.value,
        belongs_to=interrupt.belongs_to,
        terms=terms_to_message(interrupt.terms),
        created_at_ms=interrupt.created_at_ms,
        run_id=interrupt.run_id,
    )


def interrupt_from_message(message: store_pb2.Interrupt) -> Interrupt:
    return Interrupt(
        message.id,
        message.kind,
        message.value,
        message.belongs_to,
        terms_from_message(message.terms),
        message.created_at_ms,
        message.run_id,
    )


def interrupts_to_message(interrupts: Interrupts) -> store_pb2.Interrupts:
    return store_pb2.Interrupts(
        reported=map(interrupt_to_message, interrupts.reported.values()),
        takes_input=interrupts.takes_input,
        noted=map(interrupt_to_message, interrupts.noted.values()),
        aside=map(interrupt_to_message, interrupts.aside.values()),
        answered=map(interrupt_to_message, interrupts.answered.values()),
        closed=interrupts.closed,
        closed_at=interrupts.closed_at,
        forgotten=interrupts.forgotten,
        noted_at=interrupts.noted_at,
        asks_at=interrupts.asks_at,
    )


def interrupts_from_message(message: store_pb2.Interrupts) -> Interrupts:
    def by_id(messages: Iterable[store_pb2.Interrupt]) -> dict[str, Interrupt]:
        return {one.id: interrupt_from_message(one) for one in messages}

    return Interrupts(
        by_id(message.reported),
        message.takes_input or not message.reported,
        by_id(message.noted),
        by_id(message.aside),
        by_id(message.answered),
        dict.fromkeys(message.closed),
        message.closed_at,
        message.forgotten,
        message.noted_at,
        message.asks_at,
    )


def report_to_message(report: Report) -> store_pb2.Interrupts:
    """As it is journalled."""
    return store_pb2.Interrupts(reported=map(interrupt_to_message, report.interrupts), takes_input=report.takes_input)


def report_from_message(message: store_pb2.Interrupts) -> Report:
    return Report(tuple(map(interrupt_from_message, message.reported)), message.takes_input)


def note_from_message(message: store_pb2.Interrupt) -> Note:
    return Note(interrupt_from_message(message))


def still_waiting_to_message(waiting: StillWaiting) -> store_pb2.StillWaiting:
    return store_pb2.StillWaiting(ids=sorted(waiting.ids))


def still_waiting_from_message(message: store_pb2.StillWaiting) -> StillWaiting:
    return StillWaiting(frozenset(message.ids))


def seen_to_message(seen: Seen) -> run_pb2.Seen:
    return run_pb2.Seen(
        waiting=sorted(seen.waiting), last_run_id=seen.last_run, last_run_ended=seen.last_ended, head=seen.head
    )


def seen_from_message(message: run_pb2.Seen) -> Seen:
    return Seen(frozenset(message.waiting), RunId(message.last_run_id), message.last_run_ended, message.head)
