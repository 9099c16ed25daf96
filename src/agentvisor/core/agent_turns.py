"""Which agent had a thread's turn before a run, and what that run's agent finds when it takes the turn over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentvisor.core import asking
from agentvisor.core.ids import RunId
from agentvisor.core.runs import Run
from agentvisor.core.store import Store
from agentvisor.core.thread_status import root_asks

Runs = Mapping[RunId, Run]


def changes_hands(runs: Runs, store: Store, run: Run) -> bool:
    """Whether the run is of another agent than the one that may wait for answers: that one's questions stay."""
    before = _last_before(runs.values(), run)
    asks = bool(store.questions.asked or store.interrupts or store.others)
    return _turn_before(store, before) not in ("", run.spec.agent) and (asks or (before is not None and before.paused))


def take_turn(runs: Runs, store: Store, run: Run, *, apart: bool) -> None:
    """Give the run's agent the turn.

    `apart`: what another agent asks is kept for it; False in threads that an earlier version has driven so far.
    """
    before = _last_before(runs.values(), run)
    graph_asks = before is not None and before.paused and root_asks(store) and not asking.has_closed(store)
    turn = _turn_before(store, before) if apart else run.spec.agent
    asking.take_turn(store, run.spec.agent, turn, graph_asks=graph_asks)


def _last_before(runs: Iterable[Run], run: Run) -> Run | None:
    before = [one for one in runs if one.is_agent and one.attempts and not one.rolled_back and one is not run]
    return before[-1] if before else None


def _turn_before(store: Store, before: Run | None) -> str:
    # A thread that was last used by a version that kept no turns has its last run's agent.
    return store.turn or (before.spec.agent if before is not None else "")
