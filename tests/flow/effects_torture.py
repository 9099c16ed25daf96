"""Many agents that die at random around `agentvisor.once`, and what must hold of what they did outside all the same."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
from langgraph_sdk.errors import APIError
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.support.waiting_sync import until

RESTARTS = {
    "AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "1000",
    "AGENTVISOR_TEMPORAL_RUN_RESTART_INITIAL_BACKOFF": "20ms",
    "AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_BACKOFF": "20ms",
}
CARDS = 10
"""Of agents/dice.py."""
KINDS = ("graph", "agraph", "plain", "plain_async")
DECIDERS = ("bank", "person")
BUSY = (httpx.HTTPError, APIError)
"""A machine that is busy with all this may keep a reader waiting for too long."""
PATIENCE, LOOK = 1800.0, 1.0
"""Seconds for a run with all its deaths, and between looks at it: each is work for the host."""


@dataclass
class Told:
    """What became of one thread, or of all."""

    deaths: Counter[str] = field(default_factory=Counter[str])
    effects: int = 0
    decided: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])

    def add(self, other: Told) -> None:
        self.deaths += other.deaths
        self.effects += other.effects
        self.decided += other.decided
        self.problems += other.problems

    @property
    def killed(self) -> int:
        return sum(self.deaths.values())


def torture(
    project: Project, *, kills: int, seed: str, chance: float = 0.08, at_a_time: int = 4, minutes: float = 60
) -> Iterator[Told]:
    """Threads, until there were so many kills or the time is over; whenever one has ended, what became of all."""
    until_then = time.monotonic() + 60 * minutes
    told, number = Told(), count()
    with ThreadPoolExecutor(at_a_time) as pool:
        under_way = {pool.submit(_thread, project, next(number), seed, chance) for _ in range(at_a_time)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in done:
                told.add(one.result())
            yield told
            if told.killed < kills and time.monotonic() < until_then:
                under_way |= {pool.submit(_thread, project, next(number), seed, chance) for _ in done}


def _thread(project: Project, number: int, seed: str, chance: float) -> Told:
    kind, decider = KINDS[number % len(KINDS)], DECIDERS[number // len(KINDS) % len(DECIDERS)]
    thread = VictimThread(project, project.hosts[0])
    thread.tell("dice", f"{seed}:{number}:{chance}")
    thread.tell("decides", decider)
    told = Told()
    run = _ended(thread, _started(thread, kind, None))
    while run["status"] == "success" and (asked := _questions(thread)):
        answers = {one["id"]: _true_answer(project, thread, one) for one in asked}
        run = _ended(thread, _started(thread, kind, answers))
    log = [str(one["what"]) for one in thread.effects()]
    told.deaths = Counter(what.removeprefix("died ") for what in log if what.startswith("died "))
    told.decided = Counter({f"by the {decider}": sum(what.startswith("decided ") for what in log)})
    told.effects = CARDS
    told.problems = [f"thread {number} ({kind}, {decider}): {what}" for what in _problems(run, log)]
    return told


def _problems(run: dict[str, Any], log: list[str]) -> Iterator[str]:
    """Every card is charged once, and no effect is tried again unless somebody has decided that it did not happen."""
    if run["status"] != "success":
        yield f"ended {run['status']} {run['error']} {[one['ending'] for one in run['attempts']][-3:]}"
    for card in (f"card-{number}" for number in range(CARDS)):
        times = log.count(f"charged {card}")
        if times != 1:
            yield f"{card} was charged {times} times"
        story = [what.split()[0] for what in log if what in (f"tried {card}", f"decided {card}")]
        blind = sum(1 for before, what in zip(["decided", *story], story, strict=False) if before == what == "tried")
        if blind:
            yield f"{card} was tried again without a decision"


def _started(thread: VictimThread, kind: str, answers: dict[str, Any] | None) -> str:
    if answers is None:
        return thread.call(f"dice:{kind}") if kind.startswith("plain") else thread.graph(f"dice:{kind}", {})
    command = {"resume": answers}
    if kind.startswith("plain"):
        return str(thread.client.runs.create(thread.id, "call", command=command)["run_id"])
    return thread.graph(f"dice:{kind}", None, command=command)


def _ended(thread: VictimThread, run_id: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def has_ended() -> bool:
        with suppress(*BUSY):
            found.append(thread.run(run_id))
        return bool(found) and found[-1]["status"] not in ("pending", "running")

    until(has_ended, seconds=PATIENCE, pause=LOOK)
    return found[-1]


def _questions(thread: VictimThread) -> list[dict[str, Any]]:
    """What waits for an answer."""
    found: list[list[dict[str, Any]]] = []

    def read() -> bool:
        with suppress(*BUSY):
            found.append([dict(one) for one in thread.client.threads.get_state(thread.id)["interrupts"]])
        return bool(found)

    until(read, seconds=PATIENCE, pause=LOOK)
    return found[-1]


def _true_answer(project: Project, thread: VictimThread, question: dict[str, Any]) -> dict[str, Any]:
    """A person looks into the books, answers, and that is noted there."""
    card = question["value"]["key"]
    charged = thread.did()[f"charged {card}"] > 0
    with project.effects_file.open("a") as file:
        file.write(json.dumps({"what": f"decided {card}", "thread": thread.id, "attempt": 0, "pid": 0}) + "\n")
    truth: dict[str, Any] = {"done": {"charged": card}} if charged else {"not_done": True}
    return truth | {"effect": question["value"]["effect"]}
