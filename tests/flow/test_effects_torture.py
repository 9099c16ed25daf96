"""A small dose of `make effects-torture`: agents that die at random around `once` duplicate nothing (B5)."""

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VICTIMS
from tests.flow.effects_torture import RESTARTS, torture

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


def test_random_deaths_around_once_duplicate_nothing_and_hide_nothing(zygote_project: Project) -> None:
    zygote_project.names = VICTIMS
    zygote_project.host(RESTARTS, FOLDER=str(zygote_project.folder))
    *_, told = torture(zygote_project, kills=4, seed="dose")
    assert not told.problems, "\n".join(told.problems)
    assert told.killed >= 4
    assert sum(told.decided.values()) > 0
