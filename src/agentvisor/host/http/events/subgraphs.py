"""The graphs within a run: when each began, and what made it; how it ended; told by the tasks that they run in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentvisor.host.http.events.told import Told
from agentvisor.host.render_typed import Json

Namespace = tuple[str, ...]


@dataclass(slots=True)
class Graph:
    """A graph below the root."""

    name: str
    status: str = "started"


class Subgraphs:
    """Of one run."""

    def __init__(self) -> None:
        self.known: dict[Namespace, Graph] = {}
        self._named: dict[Namespace, Json] = {}
        self._calls: dict[str, str] = {}

    def task(self, namespace: Sequence[str], data: dict[str, Json]) -> Iterator[Told]:
        """What follows from a task's beginning or end: its graph was not known before, or the graph within it ends."""
        here = tuple(namespace)
        if "result" in data:
            yield from self._ended(here, data)
            return
        self._note(here, data)
        if here and here not in self.known:
            yield self._began(here, data)

    def _note(self, here: Namespace, data: dict[str, Json]) -> None:
        self._named.setdefault(here, _agent_of(data))
        task, call = data.get("id"), _call_of(data.get("input"))
        if isinstance(task, str) and call is not None:
            self._calls[task] = call

    def _began(self, here: Namespace, data: dict[str, Json]) -> Told:
        node, _, task = here[-1].partition(":")
        agent = _agent_of(data)
        graph = self.known[here] = Graph(agent if isinstance(agent, str) else node)
        told: dict[str, Json] = {"event": "started", "namespace": list(here), "graph_name": graph.name}
        if task:
            told["trigger_call_id"] = task
        # An agent that a tool has called.
        if isinstance(agent, str) and task in self._calls:
            told["cause"] = {"type": "toolCall", "tool_call_id": self._calls[task]}
        return Told("lifecycle", told, here)

    def _ended(self, here: Namespace, data: dict[str, Json]) -> Iterator[Told]:
        for place, graph in self.known.items():
            if place[:-1] != here or graph.status != "started":
                continue
            node, _, task = place[-1].partition(":")
            if data.get("id") == task or (not task and data.get("name") == node):
                error = data.get("error")
                status = "interrupted" if data.get("interrupts") else "failed" if error else "completed"
                yield from self._end_below(place, status, _said(error) if status == "failed" else None)

    def end(self, status: str) -> Iterator[Told]:
        """The run has ended, and with it what was still going on, the deepest first."""
        for place in sorted(self.known, key=len, reverse=True):
            yield from self._end(place, status)

    def cut(self) -> None:
        """The process is gone; its graphs begin again in another."""
        self.known.clear()

    def _end_below(self, place: Namespace, status: str, error: str | None) -> Iterator[Told]:
        within = [one for one in self.known if len(one) > len(place) and one[: len(place)] == place]
        for one in sorted(within, key=len, reverse=True):
            yield from self._end(one, status)
        yield from self._end(place, status, error)

    def _end(self, place: Namespace, status: str, error: str | None = None) -> Iterator[Told]:
        graph = self.known[place]
        if graph.status != "started":
            return
        graph.status = status
        told: dict[str, Json] = {"event": status, "graph_name": graph.name}
        if error is not None:
            told["error"] = error
        yield Told("lifecycle", told, place)

    def tree(self, name: str, status: str) -> dict[str, Json]:
        """The root, with the graphs below it."""
        return self._node((), Graph(name, status))

    def _node(self, place: Namespace, graph: Graph) -> dict[str, Json]:
        below = sorted(one for one in self.known if len(one) == len(place) + 1 and one[: len(place)] == place)
        node: dict[str, Json] = {"namespace": list(place), "status": graph.status, "graph_name": graph.name}
        if below:
            node["children"] = [self._node(one, self.known[one]) for one in below]
        return node


def _agent_of(data: dict[str, Json]) -> Json:
    """The name that LangChain gives to an agent: its graph is called so, and not by the node that it runs in."""
    metadata = data.get("metadata")
    return metadata.get("lc_agent_name") if isinstance(metadata, dict) else None


def _call_of(given: Json) -> str | None:
    """The tool call that a task was started for."""
    match given:
        case {"tool_call": {"id": str() as call}}:
            return call
        case [{"id": str() as call}, *_]:
            return call
        case _:
            return None


def _said(error: Json) -> str:
    match error:
        case {"message": str() as message}:
            return message
        case str():
            return error
        case _:
            return str(error)
