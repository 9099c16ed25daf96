"""What each agent of a thread asks: one has its turn, and what the others ask waits meanwhile as it is.

A question belongs to the agent that asked it. Another agent's run neither takes its answer, nor ends it, nor moves its
deadline; it gives it up only where its caller says so, and then the agent that asked forgets it at its own next turn.
What a graph asks is in the root's current checkpoint, which a thread's graphs share: it is gone once that has moved on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agentvisor.core.ids import ROOT
from agentvisor.core.interrupts import Interrupt, Interrupts
from agentvisor.core.questions import Questions
from agentvisor.core.store import Store


@dataclass(frozen=True, slots=True)
class Asks:
    """What one agent asks."""

    agent: str
    """Empty: the thread was last used by a version that did not keep them apart."""
    questions: Questions = field(default_factory=Questions)
    interrupts: Interrupts = field(default_factory=Interrupts)

    @property
    def known(self) -> dict[str, Interrupt]:
        """What of it the thread knows in full: a plain agent's questions, and what a runner reported."""
        asked = (
            Interrupt(one.id, one.kind, one.value, b"", one.terms, one.created_at_ms, one.run_id)
            for one in self.questions.waiting
        )
        return {**self.interrupts.reported, **{one.id: one for one in asked}}

    def noted(self, head: str) -> dict[str, Interrupt]:
        """Notes of what a graph asks at the root's current checkpoint."""
        at = self.interrupts.noted_at
        return self.interrupts.noted if at in ("", head) else {}


def of_all(store: Store) -> Iterator[Asks]:
    """Of every agent that asks; that of the last turn comes first."""
    yield Asks(store.turn, store.questions, store.interrupts)
    for agent, (questions, interrupts) in store.others.items():
        yield Asks(agent, questions, interrupts)


def head_of(store: Store) -> str:
    """The root's current checkpoint; empty where there is none."""
    return store.heads.get(ROOT, "")


def asker(store: Store, interrupt_id: str) -> Asks | None:
    """Whose interrupt it is; None where nobody has told the thread of it."""
    head = head_of(store)
    return next((one for one in of_all(store) if interrupt_id in one.known or interrupt_id in one.noted(head)), None)


def noted(store: Store, interrupt_id: str) -> Interrupt | None:
    """What was noted of a graph's interrupt."""
    notes = (one.interrupts.noted.get(interrupt_id) for one in of_all(store))
    return next((one for one in notes if one is not None), None)


def graph_asker(store: Store) -> str:
    """The agent without the last turn whose graph asks at the root's current checkpoint; empty where there is none."""
    head = head_of(store)
    if not head or has_closed(store):
        return ""
    return next((agent for agent, (_, asked) in store.others.items() if asked.asks_at == head), "")


def has_closed(store: Store) -> bool:
    """Whether what a graph asks at its current checkpoint was given up, though its writes still hold it."""
    head = head_of(store)
    return bool(head) and any(one.interrupts.closed_at == head for one in of_all(store))


def is_closed(store: Store, interrupt_id: str) -> bool:
    """Whether it was given up, or is overdue."""
    return has_closed(store) or any(interrupt_id in one.interrupts.closed for one in of_all(store))


def take_turn(store: Store, agent: str, before: str, *, graph_asks: bool) -> None:
    """Let an agent ask, and put aside what `before` asks, whose turn it was.

    `graph_asks`: its graph waits with questions, of which the thread need not know.
    """
    if before not in ("", agent):
        if graph_asks:
            store.interrupts.asks_at = head_of(store)
        if store.questions.asked or store.interrupts:
            store.others[before] = (store.questions, store.interrupts)
        store.questions, store.interrupts = store.others.pop(agent, None) or (Questions(), Interrupts())
        store.interrupts.asks_at = ""
    store.turn = agent


def give_up_others(store: Store) -> None:
    """Close what agents without the turn ask; each forgets it at its next one."""
    for asks in [*of_all(store)][1:]:
        give_up(store, asks)


def give_up(store: Store, asks: Asks) -> None:
    """Close what one agent asks; of what a graph asks at the root's checkpoint, what is its own."""
    head = head_of(store)
    of_others = any(kept.asks_at == head for _, kept in store.others.values())
    is_its_own = asks.interrupts.asks_at == head or (asks.interrupts is store.interrupts and not of_others)
    waiting = [one.id for one in asks.questions.waiting]
    asks.questions.clear()
    asks.interrupts.close(waiting, head if is_its_own else "")


def paused(store: Store) -> None:
    """The agent that has the turn has asked: what is shown at the root's checkpoint waits, whoever gave up before."""
    store.interrupts.paused()
    for _, interrupts in store.others.values():
        interrupts.closed.clear()
        interrupts.closed_at = ""
        if interrupts.asks_at != head_of(store):
            interrupts.asks_at = ""
    for agent in [agent for agent, (questions, kept) in store.others.items() if not (questions.asked or kept)]:
        del store.others[agent]


def stored_bytes(store: Store) -> int:
    """Of all that is asked."""
    names = sum(len(agent) + 8 for agent in store.others)
    return names + sum(one.questions.stored_bytes + one.interrupts.stored_bytes for one in of_all(store))
