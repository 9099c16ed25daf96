"""Strands agents in plain functions, whose tools charge a card; they die where the sign "strike" says (charges.py)."""

import json
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import uuid4

from strands import Agent, Snapshot, tool
from strands.hooks import HookProvider, HookRegistry, MessageAddedEvent

from agents import charges, signs
from agents.effects import effect
from agentvisor.strands import RepairHook, ToolScope
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel


@tool
def pay(note: str) -> str:
    """Pay."""
    effect(f"tool {note}")
    return str(charges.pay("plain")["charge"])


@tool
async def apay(note: str) -> str:
    """Pay."""
    effect(f"tool {note}")
    return str((await charges.apay("plain"))["charge"])


class NewIds(ScriptedModel):
    """Gives its tool uses other ids each time it is asked, as real ones do."""

    async def stream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        effect("model asked")
        async for event in super().stream(*args, **options):
            use = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
            if use is not None:
                use["toolUseId"] = uuid4().hex
            yield event


# --- an agent that begins anew each time: a key counts for the whole thread -------------------------------------------


def anew(given: Any) -> Any:
    model = NewIds([call("pay", note="first"), "Paid."])
    said = Agent(model=model, tools=[pay], hooks=[RepairHook()], callback_handler=None)("Pay.")
    return {"said": str(said).strip()}


async def bare(given: Any) -> Any:
    """Without a hook of ours."""
    model = NewIds([call("apay", note="first"), "Paid."])
    said = await Agent(model=model, tools=[apay], callback_handler=None).invoke_async("Pay.")
    return {"said": str(said).strip()}


# --- an agent that goes on where it was: a key counts for the tool use ------------------------------------------------


class Stored(HookProvider):
    """Stores the agent with each message."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(MessageAddedEvent, self._store)

    def _store(self, event: Any) -> None:
        file = signs.sign("agent")
        new = file.with_suffix(".new")
        new.write_text(json.dumps(event.agent.take_snapshot(preset="session").to_dict()))
        new.replace(file)


def goes_on(given: Any) -> Any:
    """Twice the same charge by two tool uses."""
    agent = Agent(
        model=NewIds([call("pay", note="first"), call("pay", note="second"), "Paid twice."]),
        tools=[pay],
        hooks=[Stored(), ToolScope(), RepairHook()],
        callback_handler=None,
    )
    stored = signs.read("agent")
    if stored:
        agent.load_snapshot(Snapshot.from_dict(json.loads(stored)))
    said = agent(None if stored else cast("Any", "Pay twice."))
    return {"said": str(said).strip()}
