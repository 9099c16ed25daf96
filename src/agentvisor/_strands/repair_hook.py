"""Repair as a hook of a Strands agent: the model is only ever shown a valid conversation."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from strands.hooks import AfterToolCallEvent, AfterToolsEvent, BeforeModelCallEvent, HookProvider, HookRegistry
from strands.types.tools import ToolResult

from agentvisor._strands.paused import end_if_paused
from agentvisor._strands.repair import NOT_FINISHED, repair_messages


class RepairHook(HookProvider):
    """Makes a conversation with unanswered tool uses valid before the model sees it: `Agent(hooks=[RepairHook()])`.

    `agent.messages` is changed in place, and only where something is to be repaired. Strands forgets the results of
    tools whose sibling was cut off; while the agent lives, they are kept here.
    """

    def __init__(self, *, not_finished: str = NOT_FINISHED) -> None:
        self._not_finished = not_finished
        self._ended: WeakKeyDictionary[object, dict[str, AfterToolCallEvent[Any]]] = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:  # noqa: ARG002 (Strands' signature)
        registry.add_callback(AfterToolCallEvent, self._note)
        registry.add_callback(AfterToolsEvent, end_if_paused)
        registry.add_callback(BeforeModelCallEvent, end_if_paused)
        registry.add_callback(BeforeModelCallEvent, self._repair)

    def _note(self, event: AfterToolCallEvent[Any]) -> None:
        # The event, not its result: a hook that comes later may replace that.
        self._ended.setdefault(event.agent, {})[event.tool_use["toolUseId"]] = event

    def _repair(self, event: BeforeModelCallEvent) -> None:
        ended = self._ended.pop(event.agent, {})
        results: dict[str, ToolResult] = {id_: one.result for id_, one in ended.items()}
        messages = event.agent.messages
        fixed = repair_messages(messages, results=results, not_finished=self._not_finished)
        if fixed != messages:
            messages[:] = fixed
