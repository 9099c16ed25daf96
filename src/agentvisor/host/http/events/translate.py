"""What an agent's process sends while it runs, in the words of the event protocol: one run, read from its beginning.

Pure: (mode, namespace, data) in, what is told out. Two readers who are given the same are told the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentvisor.host.http.events.messages import Messages, mirrored
from agentvisor.host.http.events.subgraphs import Subgraphs
from agentvisor.host.http.events.told import Told
from agentvisor.host.render_typed import Json
from agentvisor.host.streams import METADATA

_INTERRUPT = "__interrupt__"

Object = dict[str, Json]


class Translator:
    """Of one run."""

    def __init__(self, graph_name: str) -> None:
        self.graph_name = graph_name
        self.graphs = Subgraphs()
        self.valued = False
        """Whether values of the root were told."""
        self._messages = Messages()
        self._asked: dict[str, Told] = {}
        self._checkpoints: set[tuple[tuple[str, ...], str]] = set()

    def event(self, mode: str, namespace: Sequence[str], data: Json) -> Iterator[Told]:
        """What follows from an event; nothing, where the protocol has no word for it."""
        match mode, data:
            case "metadata", dict() if mode == METADATA:
                yield from self._attempt(data)
            case "values", _:
                yield from self._values(namespace, data)
            case "updates", dict():
                yield from self._updates(namespace, data)
            case "messages", _:
                yield from self._messages.add(namespace, data)
            case "custom", _:
                yield Told("custom", _custom(data), namespace)
            case "tasks", dict():
                yield from self._task(namespace, data)
            case "checkpoints", dict():
                yield from self._checkpoint(namespace, data)
            case "tools", dict():
                yield Told("tools", data, namespace)
                if data.get("event") == "tool-finished":
                    yield from mirrored(namespace, data)
            case _:
                pass

    def began(self, attempt: int = 1) -> Told:
        """The run goes on; with a further attempt, it says so again."""
        told: Object = {"event": "running", "graph_name": self.graph_name}
        if attempt == 1:
            return Told("lifecycle", told, name="lc||running")
        return Told("lifecycle", {**told, "attempt": attempt}, name=f"lc||running|{attempt}")

    def _attempt(self, data: Object) -> Iterator[Told]:
        attempt = data.get("attempt")
        number = attempt if isinstance(attempt, int) else 1
        if number > 1:
            yield from self._messages.cut()
            self.graphs.cut()
        yield self.began(number)

    def _values(self, namespace: Sequence[str], data: Json) -> Iterator[Told]:
        values = data
        if isinstance(data, dict) and _INTERRUPT in data:
            self._ask(namespace, data[_INTERRUPT])
            values = {name: value for name, value in data.items() if name != _INTERRUPT}
            if not values:
                return
        self.valued = self.valued or not namespace
        yield Told("values", values, namespace)

    def _updates(self, namespace: Sequence[str], data: Object) -> Iterator[Told]:
        if _INTERRUPT in data:
            self._ask(namespace, data[_INTERRUPT])
            return
        node = next(iter(data)) if len(data) == 1 else None
        yield Told("updates", data, namespace, node)

    def _ask(self, namespace: Sequence[str], asked: Json) -> None:
        """Note what waits for an answer. It is told at the run's end: an answer is taken only then."""
        for one in asked if isinstance(asked, list) else []:
            if isinstance(one, dict) and isinstance(one.get("id"), str):
                interrupt_id = str(one["id"])
                self._asked.setdefault(interrupt_id, requested(interrupt_id, one.get("value"), namespace))

    def _task(self, namespace: Sequence[str], data: Object) -> Iterator[Told]:
        if "result" in data:
            yield from self._messages.task_ended(namespace, str(data.get("id")))
        name = data.get("name")
        told = Told("tasks", data, namespace, name if isinstance(name, str) else None)
        graphs = self.graphs.task(namespace, data)
        # A graph begins before the first of its tasks, and ends before the task that it runs in.
        yield from graphs
        yield told

    def _checkpoint(self, namespace: Sequence[str], data: Object) -> Iterator[Told]:
        named = _checkpoint_id(data.get("config"))
        if named is None or (tuple(namespace), named) in self._checkpoints:
            return
        self._checkpoints.add((tuple(namespace), named))
        metadata = data.get("metadata")
        about: Object = metadata if isinstance(metadata, dict) else {}
        told: Object = {"id": named, "step": about.get("step"), "source": about.get("source")}
        parent = _checkpoint_id(data.get("parent_config"))
        if parent is not None:
            told["parent_id"] = parent
        yield Told("checkpoints", told, namespace)

    def ended(self) -> Iterator[Told]:
        """Nothing comes any more: messages that are not whole are as whole as they get; then what the run asked."""
        yield from self._messages.end()
        yield from self._asked.values()

    @property
    def asked(self) -> set[str]:
        """Ids of what the run asked."""
        return set(self._asked)

    def end(self, status: str, error: str | None = None) -> Iterator[Told]:
        """The last words: how the graphs that were still open ended, and the run."""
        yield from self.graphs.end(status)
        told: Object = {"event": status, "graph_name": self.graph_name}
        if error is not None:
            told["error"] = error
        yield Told("lifecycle", told, name=f"lc||{status}")


def requested(interrupt_id: str, value: Json, namespace: Sequence[str] = ()) -> Told:
    """A question that waits for an answer."""
    data: Object = {"interrupt_id": interrupt_id, "payload": value}
    return Told("input.requested", data, tuple(namespace), name=f"input|{'|'.join(namespace)}|{interrupt_id}")


def _custom(data: Json) -> Json:
    """What an agent wrote; `{"name", "payload"}` is for the channel of that name."""
    if isinstance(data, dict) and data.keys() == {"name", "payload"} and isinstance(data["name"], str):
        return data
    return {"payload": data}


def _checkpoint_id(config: Json) -> str | None:
    match config:
        case {"configurable": {"checkpoint_id": str() as named}}:
            return named
        case _:
            return None
