"""Whether a run may bring an answer, or new input, to a thread as it is: decided before the run is accepted.

The thread knows what its plain agent asked and what runners reported. What a graph asks is in bytes that it does not
read: there it takes the word of a host that has looked, as long as nothing has changed since that look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentvisor.core import asking
from agentvisor.core.errors import Conflict
from agentvisor.core.ids import ROOT, RunId
from agentvisor.core.interrupts import Interrupt, Seen
from agentvisor.core.runs import Run, RunKind, RunSpec
from agentvisor.core.store import Store

NO_RUN = RunId("")

CHANGED = "changed"
"""Detail of a refusal: the thread is not as the host saw it; it looks again."""

Runs = Mapping[RunId, Run]


def known(store: Store) -> dict[str, Interrupt]:
    """What waits and the thread knows in full, by id: reported ones, and a plain agent's questions."""
    return {id_: one for asks in asking.of_all(store) for id_, one in asks.known.items()}


def taken(runs: Runs) -> dict[str, RunId]:
    """The interrupts that a run which waits or runs has an answer to: nobody else answers them."""
    return {one: run.run_id for run in runs.values() if not run.status.terminal for one in run.spec.answers}


def check_answers(store: Store, runs: Runs, spec: RunSpec, seen: Seen | None) -> None:
    """Refuse an answer to what does not wait, or has an answer already: `Conflict`."""
    answered, here = taken(runs), known(store)
    for one in spec.answers:
        if one in answered:
            raise Conflict(
                f"interrupt {_short(one)} was answered already, by run {answered[one]}",
                interrupt_id=_short(one),
                run_id=answered[one],
            )
        if one in here:
            if (asker := _asker(store, runs, here[one])) not in ("", spec.agent):
                raise Conflict(
                    f"interrupt {_short(one)} was asked by agent {asker!r}: its answer goes there, not to "
                    f"{spec.agent!r}",
                    interrupt_id=_short(one),
                )
            continue
        if seen is None or one not in seen.waiting or asking.is_closed(store, one):
            raise stale(one)
        if not is_as_seen(store, runs, seen):
            raise Conflict(
                f"interrupt {_short(one)} may have been answered: the thread changed meanwhile", **{CHANGED: "true"}
            )


def _asker(store: Store, runs: Runs, interrupt: Interrupt) -> str:
    """Empty: it is not known any more."""
    asks = asking.asker(store, interrupt.id)
    if asks is not None and asks.agent:
        return asks.agent
    run = runs.get(RunId(interrupt.run_id))
    return run.spec.agent if run is not None else ""


def is_as_seen(store: Store, runs: Runs, seen: Seen) -> bool:
    """Whether nothing has happened that could have changed what waits. While a run is active, it alone may ask."""
    last = next((run for run in reversed([*runs.values()]) if run.is_agent), None)
    last_id, ended = (last.run_id, last.status.terminal) if last is not None else (NO_RUN, True)
    if (last_id, ended) != (seen.last_run, seen.last_ended):
        return False
    return not ended or store.heads.get(ROOT, "") == seen.head


def check_input(store: Store, runs: Runs, spec: RunSpec) -> None:
    """Refuse a run without answers where it would break what the framework holds: `Conflict`."""
    if spec.answers or spec.abandons or spec.kind is not RunKind.AGENT:
        return
    answered = taken(runs)
    holding = (one.interrupts for one in asking.of_all(store) if not one.interrupts.takes_input)
    waiting = [one for each in holding for one in each.reported if one not in answered]
    if waiting:
        raise Conflict(
            f"the thread waits for an answer to {listed(waiting)}, and its framework would lose what it holds with new "
            'input: answer (command: {"resume": {id: answer}}), or give the question up ("on_interrupt": "abandon")',
            interrupts=",".join(waiting)[:1000],
        )


def check_late(store: Store, spec: RunSpec) -> None:
    """What was true when a run was accepted may be so no more when its turn comes: `Conflict`."""
    check_input(store, {}, spec)
    if spec.answers_graph:
        return  # the graph's runner looks itself
    here = known(store)
    for one in spec.answers:
        if one not in here:
            raise stale(one)


def stale(interrupt_id: str) -> Conflict:
    return Conflict(
        f"interrupt {_short(interrupt_id)} does not wait for an answer (any more)", interrupt_id=_short(interrupt_id)
    )


def with_deadline(store: Store, runs: Runs) -> Iterator[tuple[str, Interrupt]]:
    """What waits, has no answer under way, and does not wait for ever; with the agent that asks."""
    answered, head = taken(runs), asking.head_of(store)
    for asks in asking.of_all(store):
        for one in (*asks.known.values(), *asks.noted(head).values()):
            if one.terms.deadline_ms and one.id not in answered:
                yield asks.agent, one


def listed(ids: Iterable[str]) -> str:
    """Some ids for an error's text."""
    named = [_short(one) for one in ids]
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return ", ".join(named[:5]) + more


def _short(interrupt_id: str) -> str:
    return interrupt_id[:200]
