"""With what a run begins, decided from what earlier runs, and earlier attempts of this one, have left.

Two saves are looked at. What the last run that came to an end left is the *base*. What is under way is stored on every
message beside it, so that the base is still there when the run fails: the caller's next input starts from the base, and
a failed turn is not in it twice. A run that crashed is different: nobody has told its caller that its input is not in,
and its tools may have done things. What it came to is gone on with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentvisor._strands.envelope import Owner, Phase, Saved, Took, check_nodes
from agentvisor._strands.turns import State, closed, waits
from agentvisor.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Given:
    """What the run's caller gave it."""

    run_id: str
    has_input: bool
    has_answers: bool
    forgets: bool = False
    """The questions that waited were given up."""

    @property
    def took(self) -> Took:
        if self.has_input:
            return "input"
        return "answers" if self.has_answers else "nothing"


@dataclass(frozen=True, slots=True)
class Beginning:
    """What to load, and what to give to the agent then."""

    loads: Saved | None
    """Its state; None: the agent is as its code makes it."""
    gives: Took
    """"nothing": what was begun goes on."""
    took: Took
    """What of the caller's the run's saves will have taken in."""
    origin: str
    new_base: Saved | None = None
    """Is to be stored as the base first: what this run starts from, should it fail."""
    is_over: bool = False
    """There is nothing left to do, as an earlier attempt has done it all: `loads.outcome` is what it came to."""


def beginning(owner: Owner, given: Given, base: Saved | None, under_way: Saved | None) -> Beginning:
    """Decide it. `InvalidInput` where there is nothing to do; `IncompatibleState` where the nodes are others.

    Args:
        owner: whose run it is.
        given: by the caller.
        base: saved as ENDED.
        under_way: saved as UNDER_WAY, by this run or an earlier one.
    """
    if base is not None and base.run_id == given.run_id and base.phase in (Phase.PAUSED, Phase.FINISHED):
        # Its host went before it could be told.
        return Beginning(base, "nothing", base.took, base.origin, is_over=True)
    if under_way is not None and under_way.run_id == given.run_id:
        if under_way.phase is Phase.FAILED:
            return Beginning(under_way, "nothing", under_way.took, under_way.origin, is_over=True)
        check_nodes(under_way, owner)
        # An answer that was taken in is given again: the agent may not have come to it.
        gives: Took = "answers" if given.has_answers else "nothing"
        return Beginning(under_way, gives, under_way.took, under_way.origin)
    left = (
        under_way if under_way is not None and under_way.state is not None and not _came_in(under_way, base) else None
    )
    if given.has_input:
        return _with_input(owner, given, base, left)
    found = left or base
    if given.forgets and found is not None and found.state is not None and waits(found.state):
        if owner.kind != "agent":
            raise InvalidInput("what this thread was asked was given up: give the run an input")
        found = left = _as_base(found, closed(found.state, found.results))
    if found is None or found.state is None:
        raise InvalidInput(
            "the run brings answers, and nothing waits for any"
            if given.has_answers
            else "there is nothing to go on with on this thread: give the run an input"
        )
    if found.phase is Phase.FINISHED and not given.has_answers:
        return Beginning(found, "nothing", "nothing", found.origin, is_over=True)
    check_nodes(found, owner)
    new = replace(left, phase=Phase.LEFT, outcome={}) if left is not None else None
    return Beginning(found, given.took, given.took, found.origin, new)


def _with_input(owner: Owner, given: Given, base: Saved | None, left: Saved | None) -> Beginning:
    if owner.kind != "agent":
        # A graph that is restored half-way ignores its new input: it would finish the old one (Strands 1.62). And
        # what it was asked is given up for good, so that no later run finds the questions again.
        gone = _as_base(base, None) if base is not None and base.phase is Phase.PAUSED else None
        return Beginning(None, "input", "input", given.run_id, gone)
    if left is not None and left.phase is Phase.FAILED and left.took == "input":
        left = None
    found = left or base
    if found is None or found.state is None:
        return Beginning(None, "input", "input", given.run_id)
    if left is None and not waits(found.state):
        return Beginning(found, "input", "input", given.run_id)
    # The host lets an input in beside open questions only where its caller abandons them.
    new = _as_base(found, closed(found.state, found.results))
    return Beginning(new, "input", "input", given.run_id, new)


def _came_in(under_way: Saved, base: Saved | None) -> bool:
    """Whether the base is that run's, or a later one's."""
    return base is not None and under_way.run_id in (base.run_id, base.covers)


def _as_base(left: Saved, state: State | None) -> Saved:
    return replace(left, phase=Phase.LEFT, state=state, results={}, outcome={})
