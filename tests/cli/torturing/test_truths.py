"""Each way in which a truth can be broken is seen, with its evidence; what a kill may do is not blamed."""

from dataclasses import replace
from itertools import count

from agentvisor.cli.torturing.records import Record
from agentvisor.cli.torturing.truths import Seen, SeenCheckpoint, SeenRun, Truth, again, violations

RUN = "run"


class Told:
    """The outside record of a thread, as its agents write it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._lines = count(1)

    def note(self, what: str, *, attempt: int = 1, run: str = RUN, **facts: str | int | None) -> None:
        record = Record(what, run, attempt, pid=1, at=0.0, line=next(self._lines))
        self.records.append(replace(record, **facts))

    def task(self, name: str, task: str, *, attempt: int = 1, checkpoint: str = "c0", written: bool = True) -> None:
        for what in ("started", "returning"):
            self.note(what, attempt=attempt, name=name, task=task)
        if written:
            self.note("written", attempt=attempt, task=task, checkpoint=checkpoint)


def well() -> tuple[Told, Seen]:
    """A run of one task and three checkpoints, without a fault."""
    told = Told()
    told.note("began")
    told.note("stored", checkpoint="c0", parent=None, step=-1)
    told.task(f"{RUN} 1 0", "t0")
    told.note("stored", checkpoint="c1", parent="c0", step=0)
    told.note("stored", checkpoint="c2", parent="c1", step=1)
    history = [
        SeenCheckpoint("c2", "c1", 1, frozenset()),
        SeenCheckpoint("c1", "c0", 0, frozenset()),
        SeenCheckpoint("c0", None, -1, frozenset({"t0"})),
    ]
    runs = [SeenRun(RUN, "success", ("completed",), frozenset({f"{RUN} 1 0"}))]
    return told, Seen("thread", told.records, history, runs, [f"{RUN} 1 0"])


def broken(seen: Seen) -> list[tuple[Truth, str, str, int]]:
    return [(one.truth, one.run, one.checkpoint, one.line) for one in violations(seen)]


def test_a_run_without_a_fault_breaks_nothing() -> None:
    assert not violations(well()[1])


def test_an_acknowledged_checkpoint_that_is_gone_is_named_with_the_line_that_acknowledged_it() -> None:
    _, seen = well()
    seen = replace(seen, history=seen.history[1:])
    assert broken(seen) == [(Truth.KEPT, RUN, "c2", 7)]


def test_acknowledged_writes_that_are_gone_are_named() -> None:
    _, seen = well()
    bare = [replace(one, finished_tasks=frozenset()) for one in seen.history]
    assert broken(replace(seen, history=bare)) == [(Truth.KEPT, RUN, "c0", 5)]


def test_a_result_that_is_missing_or_there_twice_is_a_loss() -> None:
    _, seen = well()
    for done in ([], [*seen.done, *seen.done]):
        assert broken(replace(seen, done=done)) == [(Truth.KEPT, RUN, "", 0)]


def test_a_result_that_nobody_asked_for_is_seen() -> None:
    _, seen = well()
    assert broken(replace(seen, done=[*seen.done, "stranger"])) == [(Truth.KEPT, "", "", 0)]


def test_a_gap_a_fork_and_a_repeat_in_the_chain_are_seen() -> None:
    told, seen = well()
    told.records.clear()
    newest, middle, oldest = seen.history
    gap = replace(seen, history=[replace(newest, parent="c0"), oldest])
    assert {truth for truth, *_ in broken(gap)} == {Truth.CHAIN}
    fork = replace(seen, history=[newest, replace(newest, id="c2b"), middle, oldest])
    assert Truth.CHAIN in {truth for truth, *_ in broken(fork)}
    repeat = replace(seen, history=[newest, middle, middle, oldest])
    assert (Truth.CHAIN, "", "c1", 0) in broken(repeat)


def test_a_checkpoint_under_another_parent_than_it_was_put_under_is_seen() -> None:
    told, seen = well()
    told.records[5] = replace(told.records[5], parent="elsewhere")
    assert broken(seen) == [(Truth.CHAIN, RUN, "c1", 6)]


def test_a_run_that_did_not_end_or_ended_twice_or_is_unknown_is_seen() -> None:
    told, seen = well()
    for status, endings in (
        ("running", (None,)),
        ("error", ("agent_signal",)),
        ("success", ("completed", "completed")),
        ("success", ("completed", "agent_signal")),
    ):
        runs = [replace(seen.runs[0], status=status, endings=endings)]
        assert Truth.ENDED_ONCE in {truth for truth, *_ in broken(replace(seen, runs=runs))}
    told.note("began", run="stranger")
    assert broken(seen) == [(Truth.ENDED_ONCE, "stranger", "", 0)]


def test_a_run_that_asks_has_to_end_with_its_question() -> None:
    _, seen = well()
    asks = replace(seen.runs[0], final="paused")
    assert broken(replace(seen, runs=[asks])) == [(Truth.ENDED_ONCE, RUN, "", 0)]
    assert not violations(replace(seen, runs=[replace(asks, endings=("agent_signal", "paused"))]))


def test_a_task_that_is_started_again_after_it_was_finished_is_named_with_both_lines() -> None:
    told, seen = well()
    told.task(f"{RUN} 1 0", "another id", attempt=2, written=False)
    (found,) = violations(seen)
    assert (found.truth, found.line) == (Truth.NOT_AGAIN, 8)
    assert "line 5" in found.what


def test_a_task_that_was_cut_off_may_run_again() -> None:
    told, seen = well()
    first = list(told.records)
    told.records.clear()
    told.task(f"{RUN} 1 0", "t0", written=False)
    told.records += [replace(one, attempt=2) for one in first]
    assert not violations(seen)
    assert again(told.records) == 1


def test_a_process_that_does_not_know_yet_that_it_was_replaced_is_not_blamed() -> None:
    told, seen = well()
    told.records[:] = [replace(one, attempt=2) for one in told.records]
    told.task(f"{RUN} 1 0", "t0", attempt=1, written=False)
    assert not violations(seen)
