"""What a graph is invoked with: the caller's input on the first attempt, and on a later one only what is not in yet.

LangGraph keeps a command's parts in different places. An input is in once a checkpoint of this run exists. An update or
goto is in once the null task's writes hold it. An answer leaves no trace that says whose it was: so before a command is
first given, a *mark* is stored beside it (what was waiting then), and a later attempt sees what has changed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import cast
from uuid import NAMESPACE_URL, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Command, Send, StateSnapshot

from agentvisor.core.errors import Conflict
from agentvisor.core.ids import ROOT
from agentvisor.guest.runners.langgraph_graph import Graph

NULL_TASK = "00000000-0000-0000-0000-000000000000"
RESUME = "__resume__"

MARK = "__scheduled__"
"""The mark's channel: a control channel that LangGraph no longer uses, as control writes are never dropped."""

Waiting = list[tuple[str, str]]
"""(namespace, interrupt id) of each interrupt that waits for an answer, at every level."""


@dataclass(frozen=True)
class Invocation:
    """What to call the graph with."""

    input: object
    config: RunnableConfig
    begun: bool = False
    """An earlier attempt has stored a checkpoint of the run: it stands there."""


@dataclass(frozen=True)
class Mark:
    """What was there before this run's command was given for the first time."""

    waiting: Waiting
    null_writes: int
    is_current: bool = False
    """It was given where the thread stood, even if a checkpoint was named."""


async def invocation(
    graph: Graph,
    config: RunnableConfig,
    given: object,
    command: object,
    *,
    run_id: str,
    attempt: int,
    answers: Collection[str] = (),
) -> Invocation:
    """Decide it, from what is stored. Never applies an input or an update twice, never loses or doubles an answer.

    Args:
        graph: with its checkpointer.
        config: of the run, with the checkpoint id that the caller may have named.
        given: the caller's input, or None.
        command: the caller's {"resume"?, "update"?, "goto"?}, or None.
        run_id: stored in the metadata of every checkpoint of the run.
        attempt: 1 where nothing of the run can be stored yet.
        answers: the interrupts that the run was accepted to answer. `Conflict` where one of them does not wait: the
            run before this one may have changed that. LangGraph would silently ignore the answer.
    """
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return Invocation(
            command_of(cast("Mapping[str, object]", command)) if isinstance(command, Mapping) else given, config
        )
    if attempt == 1 and not isinstance(command, Mapping):
        return Invocation(given, config)
    latest = config | {"configurable": _without_address(config)}
    head = await saver.aget_tuple(_root(latest))
    if head is not None and head.metadata.get("run_id") == run_id:
        below = _levels(config)
        if not below or _levels_begun(await graph.aget_state(latest, subgraphs=True)) >= below:
            # The run has stored a checkpoint: its input or command is in there, and what it was doing goes on.
            return Invocation(None, latest, begun=True)
        # The root's fork is stored, and what is to go on below it is not: from there, the subgraph would start anew.
        return Invocation(command_of(cast("Mapping[str, object]", command)) if command else given, config)
    if not isinstance(command, Mapping):
        return Invocation(given, config)
    wanted = cast("Mapping[str, object]", command)
    known = None if head is None else _mark(head, run_id)
    if head is not None and (known.is_current if known is not None else await _is_current(saver, config, latest)):
        # Named or not, it is where the thread stands. Only there does LangGraph tell which questions were answered.
        config = latest
    addressed = await saver.aget_tuple(_root(config))
    if addressed is None:
        return Invocation(command_of(wanted), config)
    is_current = config is latest
    waiting = list(_waiting(await graph.aget_state(config if is_current else config | _root(config), subgraphs=True)))
    mark = _mark(addressed, run_id)
    if mark is None:
        if gone := set(answers).difference(interrupt for _, interrupt in waiting):
            raise Conflict(f"interrupt {min(gone)} does not wait for an answer (any more)", interrupt_id=min(gone))
        await _store_mark(saver, addressed, run_id, waiting, is_current=is_current)
        return Invocation(command_of(wanted), config)
    left = _left(wanted, mark, waiting, addressed)
    if "resume" not in left and "resume" in wanted:
        # The answer was taken, and the task that took it may ask again: it must not find this one once more.
        await saver.aput_writes(addressed.config, [(RESUME, None)], NULL_TASK)
    return Invocation(command_of(left) if left else None, config)


async def _is_current(saver: BaseCheckpointSaver[str], config: RunnableConfig, latest: RunnableConfig) -> bool:
    """Whether a config names no checkpoint, or the latest of its namespace and of every one above it."""
    configurable: dict[str, object] = config.get("configurable", {})
    namespace, named = str(configurable.get("checkpoint_ns") or ROOT), configurable.get("checkpoint_id")
    for place, checkpoint_id in {
        **cast("Mapping[str, object]", configurable.get("checkpoint_map") or {}),
        **({namespace: named} if named else {}),
    }.items():
        here = latest | {"configurable": {**latest.get("configurable", {}), "checkpoint_ns": place}}
        found = await saver.aget_tuple(here)
        if found is None or found.checkpoint["id"] != checkpoint_id:
            return False
    return True


def _levels(config: RunnableConfig) -> int:
    """How many graphs are above the one whose checkpoint a config names."""
    namespace = cast("str", config.get("configurable", {}).get("checkpoint_ns", ""))
    return len([part for part in namespace.split("|") if part and not part.isdigit()])


def _levels_begun(snapshot: StateSnapshot) -> int:
    """How many levels of subgraphs have stored something of the tasks that this state goes on with."""
    below = [task.state for task in snapshot.tasks if isinstance(task.state, StateSnapshot)]
    return max((1 + _levels_begun(one) for one in below if one.created_at is not None), default=0)


async def waiting_at_head(graph: Graph, config: RunnableConfig) -> set[str]:
    """The interrupts that wait once the graph has stopped, at every level."""
    latest = config | {"configurable": _without_address(config)}
    return {interrupt for _, interrupt in _waiting(await graph.aget_state(latest, subgraphs=True))}


def _left(wanted: Mapping[str, object], mark: Mark, waiting: Waiting, addressed: CheckpointTuple) -> dict[str, object]:
    """What of the command is not in yet."""
    left = dict(wanted)
    if len(_null_writes(addressed)) > mark.null_writes:
        # They are stored together, in one call.
        left.pop("update", None)
        left.pop("goto", None)
    taken = {interrupt for place, interrupt in mark.waiting if (place, interrupt) not in waiting}
    resume = left.get("resume")
    by_id = {interrupt for _, interrupt in mark.waiting}
    if isinstance(resume, Mapping) and resume and by_id.issuperset(cast("Mapping[str, object]", resume)):
        answers = {id_: answer for id_, answer in cast("Mapping[str, object]", resume).items() if id_ not in taken}
        left["resume"] = answers
        if not answers:
            del left["resume"]
    elif taken:
        left.pop("resume", None)
    return left


def command_of(wanted: Mapping[str, object]) -> Command[str]:
    """A caller's {"resume"?, "update"?, "goto"?} as LangGraph has it."""
    goto = wanted.get("goto") or ()
    targets = cast("list[object]", goto if isinstance(goto, list) else [goto] if goto else [])
    return Command(
        resume=wanted.get("resume"),
        update=cast("dict[str, object] | None", wanted.get("update")),
        goto=[_target(target) for target in targets],  # pyright: ignore[reportArgumentType]
    )


def _target(target: object) -> str | Send:
    if isinstance(target, Mapping):
        sent = cast("Mapping[str, object]", target)
        return Send(str(sent["node"]), sent.get("input"))
    return str(target)


def _waiting(snapshot: StateSnapshot) -> Iterator[tuple[str, str]]:
    namespace: str = snapshot.config.get("configurable", {}).get("checkpoint_ns", "")
    for task in snapshot.tasks:
        for interrupt in task.interrupts:
            yield namespace, interrupt.id
        if isinstance(task.state, StateSnapshot):
            yield from _waiting(task.state)


def _null_writes(found: CheckpointTuple) -> list[str]:
    return [
        channel
        for task, channel, _ in found.pending_writes or ()
        if task == NULL_TASK and channel not in WRITES_IDX_MAP
    ]


def _mark_task(run_id: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"agentvisor:command:{run_id}"))


def _mark(found: CheckpointTuple, run_id: str) -> Mark | None:
    for task, channel, value in found.pending_writes or ():
        if task == _mark_task(run_id) and channel == MARK:
            stored = cast("Mapping[str, object]", value)
            waiting = [(place, id_) for place, id_ in cast("list[list[str]]", stored["waiting"])]
            return Mark(waiting, cast("int", stored["null_writes"]), bool(stored.get("is_current")))
    return None


async def _store_mark(
    saver: BaseCheckpointSaver[str], addressed: CheckpointTuple, run_id: str, waiting: Waiting, *, is_current: bool
) -> None:
    value = {
        "waiting": [list(one) for one in waiting],
        "null_writes": len(_null_writes(addressed)),
        "is_current": is_current,
    }
    await saver.aput_writes(addressed.config, [(MARK, value)], _mark_task(run_id))


def _root(config: RunnableConfig) -> RunnableConfig:
    """The root's part of the checkpoint that a config names: of a subgraph's, its ancestor."""
    configurable = {**config.get("configurable", {}), "checkpoint_ns": ""}
    above = cast("Mapping[str, str]", configurable.pop("checkpoint_map", None) or {})
    if ROOT in above:
        configurable["checkpoint_id"] = above[ROOT]
    return {"configurable": configurable}


def _without_address(config: RunnableConfig) -> dict[str, object]:
    configurable: dict[str, object] = config.get("configurable", {})
    return {key: value for key, value in configurable.items() if not key.startswith("checkpoint_")}
