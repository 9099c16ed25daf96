"""How an agent ended is judged from its parent's word, its own, and what it was told: whatever they are."""

import itertools

import pytest

from agentvisor.host.running_agent import judged
from agentvisor.protocol.v1.guest_pb2 import AgentExited, Outcome
from agentvisor.protocol.v1.run_pb2 import Ending

E = AgentExited
O = Outcome  # noqa: E741


@pytest.mark.parametrize(
    "kind, code, ending",
    [
        (E.KIND_EXITED, 0, Ending.ENDING_AGENT_ERROR),
        (E.KIND_EXITED, 3, Ending.ENDING_AGENT_ERROR),
        (E.KIND_KILLED, 9, Ending.ENDING_AGENT_SIGNAL),
        (E.KIND_OUT_OF_MEMORY, 9, Ending.ENDING_AGENT_OUT_OF_MEMORY),
        (E.KIND_COULD_NOT_START, 0, Ending.ENDING_COULD_NOT_START),
        (E.KIND_ZYGOTE_GONE, 0, Ending.ENDING_GUEST_GONE),
    ],
)
def test_without_a_last_word_the_parent_decides(kind: E.Kind.ValueType, code: int, ending: Ending.ValueType) -> None:
    assert judged(E(kind=kind, code=code), None, cancelled=False).ending == ending
    assert judged(E(kind=kind, code=code), None, cancelled=True).ending == Ending.ENDING_CANCELLED


@pytest.mark.parametrize(
    "kind, ending", [(O.KIND_COMPLETED, Ending.ENDING_COMPLETED), (O.KIND_PAUSED, Ending.ENDING_PAUSED)]
)
@pytest.mark.parametrize("cancelled", [False, True])
def test_what_was_completed_stays_so_however_the_process_ended(
    kind: O.Kind.ValueType, ending: Ending.ValueType, *, cancelled: bool
) -> None:
    assert judged(E(kind=E.KIND_KILLED, code=11), O(kind=kind), cancelled=cancelled).ending == ending


@pytest.mark.parametrize(
    "kind, ending",
    [
        (O.KIND_FAILED, Ending.ENDING_AGENT_ERROR),
        (O.KIND_COULD_NOT_LOAD, Ending.ENDING_COULD_NOT_START),
        (O.KIND_CANCELLED, Ending.ENDING_CANCELLED),
    ],
)
def test_an_error_is_an_error_unless_the_agent_was_told_to_end(
    kind: O.Kind.ValueType, ending: Ending.ValueType
) -> None:
    outcome = O(kind=kind, error_message="why")
    assert judged(E(kind=E.KIND_EXITED, code=70), outcome, cancelled=False).ending == ending
    assert judged(E(kind=E.KIND_EXITED, code=70), outcome, cancelled=True).ending == Ending.ENDING_CANCELLED


def test_every_combination_is_judged() -> None:
    outcomes = [None, *(O(kind=kind) for kind in O.Kind.values())]
    for kind, code, outcome, cancelled in itertools.product(E.Kind.values(), (0, 1), outcomes, (False, True)):
        end = judged(E(kind=kind, code=code), outcome, cancelled=cancelled)
        assert end.ending != Ending.ENDING_UNSPECIFIED
