"""One request of every kind that a writer or reader can send: whoever may not speak is tried with all of them."""

from tests.support.writing import projection, put, task_write

from agentvisor.protocol import blobs
from agentvisor.protocol.v1.items_pb2 import GetItem, ItemOperation, ItemsRequest
from agentvisor.protocol.v1.store_pb2 import (
    ChangeThreadState,
    CopyThread,
    DeleteForRuns,
    DeleteThread,
    DeltaHistory,
    EffectRequest,
    GetBlobs,
    GetCheckpoint,
    GetPart,
    GetThreadState,
    ListCheckpoints,
    ListThreadState,
    PruneThread,
    PutPart,
    Question,
    QuestionRequest,
    StoreRequest,
)

KINDS = frozenset(one.name for one in StoreRequest.DESCRIPTOR.oneofs_by_name["kind"].fields)

READS = frozenset({"get", "list", "get_blobs", "get_part", "delta_history", "get_thread_state", "list_thread_state"})
"""Who may see a thread may ask these at any time."""

VALUE = blobs.encode("json", b"1", None, blobs.Limits())

REQUESTS: dict[str, StoreRequest] = {
    "put": put(77),
    "put_writes": task_write(0, "late"),
    "put_part": StoreRequest(put_part=PutPart(upload=b"u" * 16, offset=0, data=b"x", total=1)),
    "project": projection(0),
    "get": StoreRequest(get=GetCheckpoint()),
    "list": StoreRequest(list=ListCheckpoints()),
    "get_blobs": StoreRequest(get_blobs=GetBlobs(keys=[b"k" * 32])),
    "get_part": StoreRequest(get_part=GetPart(key=b"k" * 32)),
    "delta_history": StoreRequest(delta_history=DeltaHistory(checkpoint_id="00000000", channels=["value"])),
    "delete_thread": StoreRequest(delete_thread=DeleteThread()),
    "delete_for_runs": StoreRequest(delete_for_runs=DeleteForRuns(run_ids=["r"])),
    "copy_thread": StoreRequest(copy_thread=CopyThread(target_thread_id="t-copy")),
    "prune": StoreRequest(prune=PruneThread(strategy="keep_latest")),
    "change_thread_state": StoreRequest(change_thread_state=ChangeThreadState(key="k", set=VALUE.key, blobs=[VALUE])),
    "get_thread_state": StoreRequest(get_thread_state=GetThreadState(key="k")),
    "list_thread_state": StoreRequest(list_thread_state=ListThreadState()),
    "effect": StoreRequest(effect=EffectRequest(scope="s", key="k", intend=True)),
    "items": StoreRequest(items=ItemsRequest(operations=[ItemOperation(get=GetItem(namespace=["n"], key="k"))])),
    "question": StoreRequest(question=QuestionRequest(ask=Question(id="q", name="n", kind="interrupt", value=b"1"))),
}
"""Total: a kind without its row fails `test_every_kind_of_request_has_its_row`."""


def of_kind(kind: str, thread_id: str = "") -> StoreRequest:
    """A request of a kind, for a thread."""
    request = StoreRequest()
    request.CopyFrom(REQUESTS[kind])
    request.thread_id = thread_id
    return request
