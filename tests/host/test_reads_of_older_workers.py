"""What a worker answers that is older than a question is told from what was asked for."""

from typing import cast

import pytest
from temporalio.client import Client
from tests.core.build import spec, thread

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.threads_read import ThreadReader
from agentvisor.protocol import reads
from agentvisor.protocol.v1 import thread_pb2

WHOLE = thread_pb2.ReadThread(whole_run_id="-", runs=thread_pb2.RUNS_ASKED_WHOLE)


class OfAnOlderWorker(ThreadReader):
    """Answers out of one thread, as before every run could be asked for."""

    def __init__(self, one: Thread) -> None:
        super().__init__(cast("Client", None))
        self._one = one

    async def _query(self, thread_id: ThreadId, name: str, argument: bytes) -> bytes:
        if name == "read_storage":
            return reads.read_storage(self._one, thread_pb2.ReadStorage()).SerializeToString()
        asked = thread_pb2.ReadThread.FromString(argument)
        asked.ClearField("runs")
        return reads.read_thread(self._one, asked).SerializeToString()


def with_runs(many: int) -> Thread:
    one = thread()
    for number in range(many):
        one.request_cancel(one.accept_run(spec(f"r{number}", body=b"input"), 1).run_id, 2)
    return one


async def test_its_runs_are_read_one_by_one() -> None:
    one = with_runs(5)
    read = await OfAnOlderWorker(one).state(one.thread_id, WHOLE)
    assert [*read.runs] == ["r0", "r1", "r2", "r3", "r4"]
    assert [run.spec.body for run in read.runs.values()] == [run.spec.body for run in one.runs.values()]


async def test_a_thread_whose_runs_it_does_not_all_tell_is_not_taken_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "RUNS_BYTES", 1_000)
    one = with_runs(100)
    with pytest.raises(Unavailable, match=r"tells \d+ of its 100 runs: try again once all hosts are of this version"):
        await OfAnOlderWorker(one).state(one.thread_id, WHOLE)
