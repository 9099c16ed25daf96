"""Calls that a process had not finished when it ended, beside one that waits for an answer or has its result.

ADK goes on with calls that are last in a session, and with none beside one that waits: it would wait for their results
for ever, or lose them (google/adk-python#7108). Nor does it with one that raised beside others, whose results it keeps:
the model would be asked as if it had never been called. So before anything else, ADK sees the session as if only these
calls had been made, and is stopped as soon as their results are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from google.adk.events.event import Event

from agentvisor.guest.runners.adk_json import has_parts
from agentvisor.guest.runners.adk_questions import KINDS, Question, original_of, run_ids


class CallsDone(BaseException):
    """What was to be finished is stored. Not an Exception: neither ADK nor a user's code may go on after it."""


@dataclass(frozen=True)
class Unfinished:
    """An event that made calls, and the ids of those that were not finished."""

    event: Event
    calls: frozenset[str]


def unfinished_calls(
    events: Sequence[Event], questions: Sequence[Question], started: AbstractSet[str]
) -> list[Unfinished]:
    """What has to be finished before the questions can be answered.

    Args:
        events: the session's.
        questions: those that are open in it; without any, ADK finds by itself what there is to do where a model's
            calls have no result at all.
        started: ids of calls of long-running tools that were made: they wait, and have no result yet.
    """
    invocations = {one.event.invocation_id for one in questions}
    answered = set(_answered(events))
    waiting = {id_ for one in questions for id_ in within(one.event)}
    settled = {*started, *answered, *_to_be_confirmed(events), *waiting}
    unsettled = {str(call.id) for event in events for call in event.get_function_calls()} - settled
    found: list[Unfinished] = []
    for at, event in enumerate(events):
        # What was called inside of a call is finished with that.
        if event.author == "user" or unsettled.intersection(within(event)):
            continue
        calls = {call.id for call in event.get_function_calls() if call.id and call.name not in KINDS}
        if calls - settled and (event.invocation_id in invocations or _is_cut_short(events, at, answered & calls)):
            found.append(Unfinished(event, frozenset(calls - settled)))
    return found


def _is_cut_short(events: Sequence[Event], at: int, answered: AbstractSet[str]) -> bool:
    """Whether some calls of the event have results, and nothing came of them yet: one of the others has raised."""
    event = events[at]
    if not answered or event.invocation_id != events[-1].invocation_id:
        return False
    behind = [one.get_function_responses() for one in events[at + 1 :] if one.branch == event.branch and has_parts(one)]
    return all(results and {str(one.id) for one in results} <= answered for results in behind)


def only(events: Sequence[Event], unfinished: Sequence[Unfinished]) -> list[Event]:
    """The session as if these calls had been made last, and no others with them."""
    seen = list(events)
    for one in unfinished:
        at = next(at for at, event in enumerate(seen) if event.id == one.event.id)
        behind = [
            event
            for event in seen[at + 1 :]
            if event.invocation_id != one.event.invocation_id or event.branch != one.event.branch
        ]
        seen[at:] = [_with_calls(one), *behind]
    return seen


def within(event: Event) -> list[str]:
    """The ids of the calls inside of which it is, where a tool has opened a branch or a scope."""
    return [*run_ids(event.branch), *([event.isolation_scope] if event.isolation_scope else [])]


def is_inside(branch: str | None, scope: str | None, unfinished: Sequence[Unfinished]) -> bool:
    """Whether that is inside of one of these calls."""
    inside = {*run_ids(branch), scope}
    return any(inside & one.calls for one in unfinished)


def is_result(event: Event) -> bool:
    """Whether it comes of a call: its result, or what its tool asks."""
    return bool(event.get_function_responses() or event.long_running_tool_ids)


def _with_calls(one: Unfinished) -> Event:
    event = one.event.model_copy(deep=True)
    event.long_running_tool_ids = None
    if event.content is not None:
        event.content.parts = [
            part for part in event.content.parts or [] if part.function_call and part.function_call.id in one.calls
        ]
    return event


def _answered(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        yield from (str(response.id) for response in event.get_function_responses())


def _to_be_confirmed(events: Sequence[Event]) -> Iterator[str]:
    """Calls that a person is or was asked about."""
    for event in events:
        yield from map(original_of, event.get_function_calls())
