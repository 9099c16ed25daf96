"""A recording: what the SDK sent to store a thread, request by request, in a file that names who sent it."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.golden.scenario import CONFIG, GIVEN, builder

import agentvisor
from agentvisor.langgraph import AgentVisorCheckpointer
from agentvisor.protocol.frames import Frames, frame
from agentvisor.protocol.v1.store_pb2 import StoreRequest

FOLDER = Path(__file__).parent / "recorded"
WRITES = ("put", "put_writes")


def name() -> str:
    """Of a recording that this environment makes."""
    langgraph, checkpoint = version("langgraph"), version("langgraph-checkpoint")
    return f"agentvisor-{agentvisor.__version__}.langgraph-{langgraph}.checkpoint-{checkpoint}.binpb"


def record() -> bytes:
    """Live through the scenario until its question."""
    double = StoreDouble()
    with way_to(double, "socketpair") as transport:
        graph = builder().compile(checkpointer=AgentVisorCheckpointer(transport=transport))
        paused = graph.invoke(GIVEN, CONFIG, durability="sync")
        assert paused["__interrupt__"]
    written = [one for one in double.requests if one.WhichOneof("kind") in WRITES]
    return b"".join(frame(one.SerializeToString(deterministic=True)) for one in written)


def recorded(path: Path) -> Iterator[StoreRequest]:
    for data in Frames().feed(path.read_bytes()):
        yield StoreRequest.FromString(data)
