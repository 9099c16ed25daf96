"""A value that comes again in another form: what a host believes to be held is held in the workflow."""

from agentvisor.core.applying import apply
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId
from agentvisor.core.records import Blob, Checkpoint, DeleteForRuns, Encoding, Operation, PutBlobs
from agentvisor.core.store import Store
from agentvisor.protocol.stores import store_from_message, store_to_message

OLD, VALUE, ON_VALUE = BlobKey(b"old"), BlobKey(b"value"), BlobKey(b"on value")


def blob(key: BlobKey, base: BlobKey | None = None) -> PutBlobs:
    encoding = Encoding.RAW if base is None else Encoding.PATCH
    return PutBlobs((Blob(key, "bytes", encoding, b"data", base, 4, 0 if base is None else 1),))


def checkpoint(number: int, run: str, key: BlobKey) -> Checkpoint:
    return Checkpoint(ROOT, CheckpointId(str(number)), None, "", b"", b"", {"channel": key}, "", None, run)


def applied(store: Store, *operations: Operation) -> Store:
    for operation in operations:
        apply(store, operation)
    return store


def test_a_value_that_was_a_base_alone_and_comes_again_as_a_difference_holds_its_new_base() -> None:
    workflow = applied(
        Store(), blob(OLD), checkpoint(1, "first", OLD), blob(VALUE), blob(ON_VALUE, VALUE), checkpoint(2, "", ON_VALUE)
    )
    # A host that reads no values knows nothing of bases: it takes the value that the SDK sends for a new one.
    host = store_from_message(store_to_message(workflow, workflow.all_checkpoints(), blobs=False))
    assert not host.has_blob(VALUE)
    again = [blob(VALUE, OLD), checkpoint(3, "", VALUE), DeleteForRuns(frozenset({"first"}))]
    applied(host, *again)
    applied(workflow, *again)
    assert host.has_blob(OLD)
    assert OLD in workflow.blobs  # before, it was gone, and the host took the next checkpoint to name it for whole
    assert [one.key for one in workflow.chain([ON_VALUE])] == [OLD, VALUE, ON_VALUE]


def test_a_value_does_not_become_a_difference_from_what_rests_on_it() -> None:
    store = applied(Store(), blob(VALUE), blob(ON_VALUE, VALUE), checkpoint(1, "", ON_VALUE), blob(VALUE, ON_VALUE))
    assert [one.key for one in store.chain([ON_VALUE])] == [VALUE, ON_VALUE]
    applied(store, checkpoint(1, "", BlobKey(b"other")))
    store.drop_unreferenced_blobs()
    assert (store.blobs, {key: n for key, n in store.references.items() if key != b"other"}) == ({}, {})


def test_a_form_that_is_taken_lets_go_of_the_old_base() -> None:
    store = applied(Store(), blob(OLD), blob(VALUE, OLD), checkpoint(1, "", VALUE), blob(VALUE))
    assert list(store.blobs) == [VALUE]


def test_a_value_that_comes_again_from_another_place_outside_is_where_the_host_that_sent_it_knows_it_to_be() -> None:
    def outside(location: str) -> PutBlobs:
        return PutBlobs((Blob(VALUE, "bytes", Encoding.RAW, b"", None, 4, 0, location, 4),))

    workflow = applied(Store(), outside("first"), blob(ON_VALUE, VALUE), checkpoint(1, "", ON_VALUE))
    # A host that reads no values takes it for a new one, and writes an object of its own.
    applied(workflow, outside("second"), checkpoint(2, "", VALUE))
    assert workflow.blobs[VALUE].location == "second"
    applied(workflow, blob(VALUE))  # a form that is stored here says nothing of the one outside
    assert workflow.blobs[VALUE].location == "second"
