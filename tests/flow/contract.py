"""How one speaks with the runner contract's agents: each framework has its own form of input and reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.flow.conftest import AGENTS, SDK_AGENTS
from tests.flow.deaths import VictimThread

WORDS = ("one", "two", "three", "four")
"""What "stream" tells, one by one (agents/contract_steps.py)."""


@dataclass(frozen=True, slots=True)
class Framework:
    """The agent of one framework, `agents/contract_<name>.py`."""

    name: str
    given: Callable[[str], Any]
    """The input that says a text."""
    reply: Callable[[Mapping[str, Any]], str]
    """The reply in what a run gives back."""
    words: Callable[[list[Any]], list[str]]
    """The words among the data of streamed events."""
    kept: str = ""
    """What the error of a value that cannot be stored names; empty: this framework refuses it by itself."""
    folder: Path = AGENTS
    """Where its agent is."""

    @property
    def entrypoint(self) -> str:
        return str(self.folder / f"contract_{self.name}.py:agent")

    def say(self, thread: VictimThread, text: str) -> str:
        """Start a run that says a text; its id."""
        return self._run(thread, input=self.given(text))

    def answer(self, thread: VictimThread, answer: object) -> str:
        """Start a run that answers; its id."""
        return self._run(thread, command={"resume": answer})

    def heard(self, thread: VictimThread) -> str:
        """The reply of the last run."""
        last = thread.client.runs.list(thread.id, limit=1)[0]
        return self.reply(thread.client.runs.join(thread.id, last["run_id"]))  # type: ignore[arg-type]

    def _run(self, thread: VictimThread, **given: Any) -> str:
        return str(thread.client.runs.create(thread.id, self.name, **given)["run_id"])

    def __str__(self) -> str:
        return self.name


def _yielded(data: list[Any]) -> list[str]:
    return [one["word"] for one in data if isinstance(one, dict) and "word" in one]


def _texts(data: list[Any]) -> list[str]:
    return [one["text"].strip() for one in data if isinstance(one, dict) and one.get("type") == "text"]


def _chunks(data: list[Any]) -> list[str]:
    chunks = [one[0] for one in data if isinstance(one, list)]
    return [one["content"].strip() for one in chunks if one["type"] == "AIMessageChunk"]


FRAMEWORKS = [
    Framework(
        "function",
        lambda text: {"say": text},
        lambda values: str(values["reply"]),
        _yielded,
        kept="['heard'][0]['what']",
    ),
    Framework("strands", lambda text: text, lambda values: str(values["text"]), _texts, kept="kept"),
    Framework("adk", lambda text: text, str, _chunks),
    Framework("pydantic_ai", lambda text: text, str, _chunks, kept="cannot be stored"),
    Framework("langgraph", lambda text: {"say": text}, lambda values: str(values["reply"]), _yielded, kept="kept"),
]

if find_spec("agents"):
    FRAMEWORKS.append(Framework("openai_agents", lambda text: text, str, _chunks, folder=SDK_AGENTS))

if find_spec("crewai"):
    # It has an environment of its own, in which there are no others (make test-crewai).
    FRAMEWORKS[:] = [
        Framework(
            "crewai",
            lambda text: {"say": text},
            lambda values: str(values.get("output", values)["reply"]),
            lambda data: [str(one["text"]).strip() for one in data if "text" in one],
            kept="the result of keeping['what'] is a object",
        )
    ]
