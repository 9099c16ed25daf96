"""Requests for confirmation that a process did not come to store: what asks for them is in the session.

A tool that wants to be confirmed is answered with an error that is marked so, and beside it stands the request that a
person sees. ADK stores the two as two events; of the first alone it would tell the model that nobody confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.adk.events.event import Event
from google.genai import types

from agentvisor.guest.runners.adk_questions import CONFIRMATION, original_of


def lost_requests(events: Sequence[Event]) -> list[Event]:
    """The events that are missing in the latest invocation, as ADK would have made them."""
    latest = [event for event in events if event.invocation_id == events[-1].invocation_id] if events else []
    calls = {str(call.id): call for event in latest for call in event.get_function_calls()}
    asked = {original_of(call) for call in calls.values()}
    return [
        _request(event, lost)
        for event in latest
        if (
            lost := [
                calls[id_] for id_ in event.actions.requested_tool_confirmations if id_ in calls and id_ not in asked
            ]
        )
    ]


def _request(event: Event, calls: Sequence[types.FunctionCall]) -> Event:
    parts = [
        types.Part(
            function_call=types.FunctionCall(
                # Of the call that is to be confirmed: whoever makes this event up again gives it the same name.
                id=f"adk-confirmation-{call.id}",
                name=CONFIRMATION,
                args={
                    "originalFunctionCall": call.model_dump(exclude_none=True, by_alias=True),
                    "toolConfirmation": event.actions.requested_tool_confirmations[str(call.id)].model_dump(
                        exclude_none=True, by_alias=True
                    ),
                },
            )
        )
        for call in calls
    ]
    return Event(
        invocation_id=event.invocation_id,
        author=event.author,
        branch=event.branch,
        isolation_scope=event.isolation_scope,
        node_info=event.node_info.model_copy(deep=True),
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={str(part.function_call.id) for part in parts if part.function_call},
    )
