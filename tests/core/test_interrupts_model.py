"""What waits on a thread under any sequence of moves, beside a small model that knows only what was promised."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.core.build import spec, thread

from agentvisor.core import deadlines
from agentvisor.core.answering import known, taken
from agentvisor.core.attempts import Close, Source, Step
from agentvisor.core.errors import Conflict
from agentvisor.core.interrupts import Interrupt, Report, Terms
from agentvisor.core.runs import Ending, Run, RunSpec, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.protocol.threads import spec_from_message, thread_from_message, thread_to_message
from agentvisor.protocol.v1 import run_pb2

pytestmark = pytest.mark.thorough

AGENTS = st.sampled_from(["one", "two"])
IDS = st.sampled_from("abcdefgh")


def asker(interrupt: str) -> str:
    """The agent that asks under this id."""
    return "one" if interrupt in "abcd" else "two"


OPEN = st.integers(0, 3)


class InterruptsMachine(RuleBasedStateMachine):
    """Two agents that report what waits; callers that answer, bring input, give up; deadlines that pass."""

    def __init__(self) -> None:
        super().__init__()
        self.thread: Thread = thread()
        self.open: dict[str, int] = {}
        """What waits, and which asking of that id it is."""
        self.takes_input = {"one": True, "two": True}
        self.asked: Counter[str] = Counter()
        self.used: Counter[tuple[str, int]] = Counter()
        """How often an answer to an asking was taken."""
        self.now = 0

    # --- callers -----------------------------------------------------------------------------------------------------

    @rule(answers=st.lists(st.one_of(OPEN, IDS), max_size=2), abandons=st.booleans(), agent=AGENTS)
    def start(self, answers: list[str | int], agent: str, *, abandons: bool) -> None:
        """Answers are mostly for what waits."""
        waiting = sorted(self.open) or ["a"]
        named = dict.fromkeys(one if isinstance(one, str) else waiting[one % len(waiting)] for one in answers)
        self._start([*named], agent, abandons=abandons)

    def _start(self, answers: list[str], agent: str, *, abandons: bool) -> None:
        self.now += 1
        given = replace(
            spec(f"r{self.now}", resumes=bool(answers)),
            agent=agent,
            answers=tuple(answers),
            abandons=abandons and not answers,
        )
        answered = taken(self.thread.runs)
        free = set(self.open) - set(answered)
        if answers:
            refused = not free.issuperset(answers) or {*map(asker, answers)} != {agent}
        else:
            refused = self._would_break(free)
        if refused and not given.abandons:
            with pytest.raises(Conflict):
                self.thread.check_run(given)
            return
        self.thread.check_run(given)
        self.thread.accept_run(self._carried(given), self.now)

    def _would_break(self, waiting: Iterable[str]) -> bool:
        return not all(self.takes_input[asker(one)] for one in waiting)

    def _carried(self, given: RunSpec) -> RunSpec:
        """As it comes out of a message, which a compaction carries."""
        message = run_pb2.RunSpec.FromString(given.body)
        message.agent = given.agent
        message.answers[:] = given.answers
        message.abandons = given.abandons
        return spec_from_message(message)

    @property
    def idle(self) -> bool:
        return self.thread.next_run(0) is None

    @precondition(lambda self: self.idle)
    @rule(expires=st.booleans())
    def give_up(self, *, expires: bool) -> None:
        self.now += 1
        if expires:
            overdue = deadlines.overdue(self.thread, 10**9)
            if overdue is None:
                assert not self.open
                return
            assert {one.id for one in overdue.interrupts} == self._of(overdue.agent)
            deadlines.expire(self.thread, overdue, self.now)
            self._forget(overdue.agent)
        else:
            deadlines.check_close_interrupts(self.thread)
            deadlines.close_interrupts(self.thread, self.now)
            self.open = {}

    def _of(self, agent: str) -> set[str]:
        return {one for one in self.open if asker(one) == agent}

    def _forget(self, agent: str) -> None:
        self.open = {one: number for one, number in self.open.items() if asker(one) != agent}

    # --- a run -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.thread.active is None and not self.idle)
    @rule()
    def begin(self) -> None:
        run = self.thread.next_run(0)
        assert run is not None
        self.now += 1
        harmful = (
            not set(self.open).issuperset(run.spec.answers)
            if run.spec.answers
            else self._would_break(self.open) and not run.spec.abandons
        )
        refused = self.thread.refuse_late(run, self.now)
        assert refused == (harmful and not run.attempts)
        if refused:
            assert run.status is RunStatus.ERROR
            return
        first = not run.attempts
        self.thread.begin_attempt(run, self.now)
        if first and run.spec.abandons:
            self.open = {}
            assert self.thread.store.interrupts.forgotten

    @precondition(lambda self: self.thread.active is not None)
    @rule(rest=st.booleans(), new=st.lists(IDS, unique=True, max_size=2), takes_input=st.booleans())
    def report(self, new: list[str], *, rest: bool, takes_input: bool) -> None:
        """Its framework took the answers that the run brings, where it had not before; the rest waits, and new ones."""
        answers = self._run().spec.answers
        # It does not ask under an id that the same run answers: its next attempt could not tell.
        agent = self._run().spec.agent
        new = [one for one in new if one not in answers and asker(one) == agent]
        for one in set(answers) & set(self.open):
            self.used[one, self.open[one]] += 1
        left = {one: self.open[one] for one in self._of(agent) if rest and one not in answers}
        for one in new:
            if one not in left:
                self.asked[one] += 1
                left[one] = self.asked[one]
        told = Report(
            tuple(Interrupt(one, "question", b"1", terms=Terms(deadline_ms=10**6)) for one in left), takes_input
        )
        self.thread.apply([told], Source(), self.now)
        self._forget(agent)
        self.open |= left
        self.takes_input[agent] = takes_input or not left

    @precondition(lambda self: self.thread.active is not None)
    @rule(ending=st.sampled_from([Ending.COMPLETED, Ending.PAUSED, Ending.AGENT_ERROR, Ending.AGENT_SIGNAL]))
    def end(self, ending: Ending) -> None:
        self.now += 1
        agent = self._run().spec.agent
        follows = self.thread.close_attempt(Close(ending), self.now)
        if ending is Ending.COMPLETED:
            self._forget(agent)
        assert follows.step in (Step.FINISHED, Step.AGAIN)

    @precondition(lambda self: self.thread.active is None)
    @rule()
    def compact(self) -> None:
        self.thread = thread_from_message(thread_to_message(self.thread))

    def _run(self) -> Run:
        assert self.thread.active is not None
        return self.thread.runs[self.thread.active.run_id]

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def the_thread_knows_what_waits(self) -> None:
        assert set(known(self.thread.store)) == set(self.open)

    @invariant()
    def nobody_else_answers_what_has_an_answer_under_way(self) -> None:
        under_way = [one for run in self.thread.runs.values() if not run.status.terminal for one in run.spec.answers]
        assert len(under_way) == len(set(under_way))

    @invariant()
    def no_answer_is_used_twice(self) -> None:
        assert all(times == 1 for times in self.used.values())


TestInterrupts = InterruptsMachine.TestCase
TestInterrupts.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
