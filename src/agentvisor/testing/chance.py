"""Faults drawn from a seed: the same seed draws the same plan, so that a failure can be repeated."""

from __future__ import annotations

import random
from collections.abc import Sequence

from agentvisor.testing.faults import ANY, Fault, Point, Target, points

MOST_STOPPED = 1.0


class Chance:
    """Draws plans for one test; every drawing moves on, so that a test can draw several."""

    def __init__(self, seed: int, of: str) -> None:
        self.seed = seed
        # Text: hashes differ from process to process. Each test draws for itself, whatever runs beside it.
        self.random = random.Random(f"{seed} {of}")  # noqa: S311 (it must be repeatable)
        self.drawn: list[Fault] = []

    def faults(
        self,
        count: int = 1,
        *,
        operations: Sequence[str] = (ANY,),
        targets: Sequence[Target] = ("agent",),
        within: int = 10,
        stops: bool = False,
    ) -> tuple[Fault, ...]:
        """So many faults at different points, each before or after one of the first `within` such operations.

        Kills; with `stops`, about one in three is a stop of up to a second instead.
        """
        places = [place for operation in operations for place in points(within, operation)]
        drawn = tuple(
            self._fault(Point.parse(place), self.random.choice(list(targets)), stops=stops)
            for place in self.random.sample(places, count)
        )
        self.drawn += drawn
        return drawn

    def _fault(self, point: Point, target: Target, *, stops: bool) -> Fault:
        if target == "agent" and ((point.when, point.operation) == ("before", "start") or point.operation == "outcome"):
            # The agent is not there yet, or no longer.
            target = "guest"
        if stops and self.random.random() < 1 / 3:
            return Fault("stop", point, target, round(self.random.uniform(0.05, MOST_STOPPED), 2))
        return Fault("kill", point, target)
