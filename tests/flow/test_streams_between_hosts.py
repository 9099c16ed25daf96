"""A client reads a run through whatever host it meets: each event once and in order, wherever the run lives or goes."""

from collections.abc import Generator

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.flow.serving import Deployment, deployment, seconds_to_end
from tests.flow.streaming import Reading, increasing
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

EACH = 6
STEPS = 4
ALL = [{"step": step, "number": number} for step in range(STEPS) for number in range(EACH)]


@pytest.fixture
def hosts(zygote_project: Project) -> Generator[Deployment]:
    with deployment(zygote_project, TEMPORAL_RUN_RESTART_MAX_ATTEMPTS="3") as of:
        yield of


class Run:
    """A run of the ticking graph that has told half of a step, and waits; and where it lives."""

    def __init__(self, hosts: Deployment, stops: list[int]) -> None:
        self.hosts = hosts
        self.thread: VictimThread = hosts.thread()
        given = {"wanted": STEPS, "each": EACH, "stops": stops}
        self.id = self.thread.graph("ticking", given, stream_mode=["custom", "values"])
        self.path = f"/threads/{self.thread.id}/runs/{self.id}/stream"
        self.home = self.find_home()
        self.other: HostProcess = hosts.others(self.home)

    def find_home(self) -> HostProcess:
        """The host that it lives on now, once one that is left has it."""
        found: list[HostProcess] = []

        def has_one() -> bool:
            host_id = self._host_id()
            found[:] = [one for one in self.hosts.hosts if host_id and one.pid == int(host_id.split("-")[-2])]
            return bool(found)

        until(has_one, seconds=30)
        self.home = found[0]
        return self.home

    def _host_id(self) -> str:
        attempts = self.thread.run(self.id)["attempts"]
        return str((attempts and attempts[-1]["host_id"]) or "")

    def go(self, step: int) -> None:
        self.thread.tell(f"go{step}")

    def read(self, host: HostProcess, after: object = None, mode: str = "custom") -> Reading:
        return Reading(host, self.path, after=after, stream_mode=mode)


def test_a_client_of_another_host_is_told_the_same_as_one_of_the_runs_own(hosts: Deployment) -> None:
    run = Run(hosts, stops=[1])
    near, far = run.read(run.home), run.read(run.other)
    far.until(EACH + EACH // 2)
    run.go(1)
    assert far.to_its_end().told == near.to_its_end().told
    assert far.of("custom") == ALL
    assert far.of("metadata") == [{"run_id": run.id, "attempt": 1}]
    assert set(far.names) == {"metadata", "custom"}
    assert increasing(far)
    # The end was durable before the stream's.
    assert run.thread.run(run.id)["status"] == "success"
    # Also afterwards, wherever it is asked for.
    for host in hosts.hosts:
        assert run.read(host, after=-1).to_its_end().told == far.told
        assert run.read(host, after=far.told[9].id).to_its_end().told == far.told[10:]


def test_a_client_goes_on_at_another_host_where_it_was_cut_off(hosts: Deployment) -> None:
    run = Run(hosts, stops=[1, 2])
    first = run.read(run.home)
    first.until(EACH + EACH // 2)
    first.leave()
    second = run.read(run.other, after=first.last_id)
    run.go(1)
    second.until(EACH)
    second.leave()
    third = run.read(run.home, after=second.last_id)
    run.go(2)
    third.to_its_end()
    assert [*first.of("custom"), *second.of("custom"), *third.of("custom")] == ALL
    assert increasing(first, second, third)
    assert not {"gap"} & {*first.names, *second.names, *third.names}


def test_a_run_that_a_stopping_host_hands_over_is_told_without_a_gap(hosts: Deployment) -> None:
    run = Run(hosts, stops=[1, 2])
    far, near = run.read(run.other), run.read(run.home)
    near.until(EACH + EACH // 2)
    far.until(EACH + EACH // 2)
    run.thread.on(run.other)
    hosts.stop(run.home)
    run.go(1)
    near.to_its_end()
    again = run.read(run.other, after=near.last_id)
    seconds_to_end(run.home)
    run.go(2)
    far.to_its_end()
    assert far.of("custom") == ALL
    assert [one["attempt"] for one in far.of("metadata")] == [1, 2]
    assert "gap" not in far.names
    assert increasing(far)
    # Its own client was cut off with it, and misses nothing where it comes next.
    again.to_its_end()
    assert near.told + again.told == far.told


def test_what_went_with_a_host_that_is_killed_is_a_gap_then_the_values_and_then_goes_on(hosts: Deployment) -> None:
    run = Run(hosts, stops=[1, 2])
    far = run.read(run.other)
    far.until(EACH + EACH // 2)
    run.thread.on(run.other)
    hosts.hosts.remove(run.home)
    run.home.kill()
    until(lambda: "gap" in far.names, seconds=30)
    run.go(1)
    run.go(2)
    far.to_its_end()
    assert run.thread.run(run.id)["status"] == "success"
    gap = far.names.index("gap")
    assert far.told[gap].data["run_id"] == run.id
    # What the thread holds now: the step that was finished.
    assert (far.told[gap + 1].event, far.told[gap + 1].data["done"]) == ("values", [0])
    assert [one["attempt"] for one in far.of("metadata")] == [1, 2]
    # Attempt 2 does the unfinished step again, and says so after its metadata.
    before = [one.data for one in far.told[:gap] if one.event == "custom"]
    after = [one.data for one in far.told[gap:] if one.event == "custom"]
    assert before == ALL[: EACH + EACH // 2]
    assert after == ALL[EACH:]
    assert increasing(far)


@pytest.mark.parametrize("asked", ["false", "true"])
def test_a_reader_of_another_host_who_leaves_cancels_only_if_asked(hosts: Deployment, asked: str) -> None:
    run = Run(hosts, stops=[1])
    far = Reading(run.other, run.path, cancel_on_disconnect=asked)
    far.until(1, "metadata")
    far.leave()
    if asked == "true":
        assert run.thread.ended(run.id)["status"] == "interrupted"
    else:
        run.go(1)
        assert run.thread.ended(run.id)["status"] == "success"


@pytest.mark.slow
def test_three_clients_of_a_run_that_is_handed_over_twice_miss_nothing(zygote_project: Project) -> None:
    with deployment(zygote_project, hosts=3) as hosts:
        run = Run(hosts, stops=[1, 2, 3])
        clients = [[run.read(one)] for one in (run.home, *(one for one in hosts.hosts if one is not run.home))]
        for step in (1, 2):
            for client in clients:
                had = sum(len(one.of("custom")) for one in client[:-1])
                client[-1].until(step * EACH + EACH // 2 - had)
            home = run.home
            others = [one for one in hosts.hosts if one is not home]
            run.thread.on(others[-1])
            hosts.stop(home)
            run.go(step)
            for client in clients:
                if client[-1].host is home:
                    client[-1].to_its_end()
                    client.append(run.read(others[-1], after=client[-1].last_id))
            seconds_to_end(home)
            # That its readers are cut off is no fault.
            assert '"error"' not in home.log.read_text()
            run.find_home()
        run.go(3)
        for client in clients:
            client[-1].to_its_end()
            told = [one for reading in client for one in reading.told]
            assert [one.data for one in told if one.event == "custom"] == ALL
            assert [one.data["attempt"] for one in told if one.event == "metadata"] == [1, 2, 3]
            assert "gap" not in [one.event for one in told]
            assert increasing(*client)
