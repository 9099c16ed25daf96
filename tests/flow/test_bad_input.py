"""Whatever is sent that cannot be accepted: a clear error over real HTTP, and nothing half-created."""

import json
import os
import re
from collections.abc import Generator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import grpc
import httpx
import pytest
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from tests.flow.conftest import Project, client_of
from tests.support.host_process import HostProcess

from agentvisor.core.errors import Internal, InvalidInput, ValueTooLarge
from agentvisor.langgraph import AgentVisorCheckpointer
from agentvisor.protocol.blobs import blob_key
from agentvisor.protocol.compression import compress
from agentvisor.protocol.v1 import store_pb2
from agentvisor.protocol.v1.guest_pb2_grpc import StoreHostStub
from agentvisor.protocol.v1.store_pb2 import GetCheckpoint, StoreRequest

pytestmark = pytest.mark.flow

KB = 1000
HTTP = httpx.Client(timeout=30)
LIMITS = {"AGENTVISOR_STORAGE_MAX_INLINE_VALUE": str(200 * KB), "AGENTVISOR_STORAGE_MAX_STATE": str(500 * KB)}
AGENTS = {
    "echo": "plain.py:echo",
    "graph": "graphs.py:make",
    "broken": "broken.py:agent",
    "deep": "broken_deep.py:agent",
    "missing": "plain.py:ecko",
}
THREAD_ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:-]{1,255}")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[HostProcess]:
    """A host with agents that cannot be loaded, and small limits."""
    project = Project(tmp_path_factory.mktemp("bad"), temporal, "zygote", AGENTS)
    host = project.host(LIMITS)
    try:
        yield host
    finally:
        host.stop()


def post(host: HostProcess, place: str, body: object) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HTTP.post(f"{host.url}{place}", content=content, headers={"content-type": "application/json"})


def start(host: HostProcess, agent: str, **more: object) -> tuple[str, httpx.Response]:
    """Start a run on a thread that is made for it; the thread's id, and the answer."""
    thread = str(uuid4())
    body = {"assistant_id": agent, "if_not_exists": "create", **more}
    return thread, post(host, f"/threads/{thread}/runs", body)


def said(answer: httpx.Response, status: int) -> str:
    """The message of an error in the form that all errors have."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body.keys() >= {"code", "message", "detail"}
    return str(body["message"])


def is_absent(host: HostProcess, thread: str) -> bool:
    return HTTP.get(f"{host.url}/threads/{thread}").status_code == 404


def failed_run(host: HostProcess, agent: str, **more: Any) -> tuple[str, dict[str, str]]:
    """The thread, and the error that its run ended with."""
    client = client_of(host)
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, agent, raise_error=False, **more)
    (run,) = client.runs.list(thread)
    assert run["status"] == "error"
    assert client.threads.get(thread)["status"] == "error"
    error: dict[str, str] = run["error"]  # type: ignore[typeddict-item]
    return thread, error


# --- agents --------------------------------------------------------------------------------------------------------


def test_an_unknown_agent_is_refused_with_those_there_are(host: HostProcess) -> None:
    thread, answer = start(host, "ecko")
    message = said(answer, 422)
    assert "'ecko'" in message
    assert all(agent in message for agent in AGENTS)
    assert is_absent(host, thread)


def test_an_unknown_agent_changes_nothing_on_a_thread_that_is_there(host: HostProcess) -> None:
    client = client_of(host)
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "echo", input=1)
    before = client.threads.get(thread)
    said(post(host, f"/threads/{thread}/runs", {"assistant_id": "ecko"}), 422)
    assert client.threads.get(thread) == before
    assert len(client.runs.list(thread)) == 1


def test_an_agent_that_does_not_import_fails_with_the_users_traceback(host: HostProcess) -> None:
    thread, error = failed_run(host, "broken", input={})
    assert error["error"] == "ModuleNotFoundError"
    assert "broken.py" in error["message"]
    assert "not_there_at_all" in error["message"]
    shown = json.dumps(client_of(host).runs.list(thread)) + log_of(host, thread)
    assert 'broken.py\\", line 3' in shown or 'broken.py", line 3' in shown
    assert "agentvisor/guest" not in shown


def test_an_error_inside_an_agents_import_is_shown_where_it_happened(host: HostProcess) -> None:
    thread, error = failed_run(host, "deep", input={})
    assert error["error"] == "RuntimeError"
    shown = json.dumps(client_of(host).runs.list(thread)) + log_of(host, thread)
    assert "in inner" in shown
    assert "agentvisor/guest" not in shown


def test_an_agent_that_is_not_in_its_file_names_the_nearest(host: HostProcess) -> None:
    thread, error = failed_run(host, "missing", input={})
    assert "'ecko'" in error["message"]
    assert "did you mean 'echo'?" in error["message"]
    assert client_of(host).threads.get_history(thread) == []


def test_a_failed_load_is_not_tried_again(host: HostProcess) -> None:
    thread, _ = failed_run(host, "missing", input={})
    (run,) = client_of(host).runs.list(thread)
    (attempt,) = run["attempts"]  # type: ignore[typeddict-item]
    assert attempt["attempt"] == 1


def log_of(host: HostProcess, thread: str) -> str:
    return "\n".join(line for line in host.log.read_text().splitlines() if thread in line)


# --- bodies --------------------------------------------------------------------------------------------------------

NOT_JSON = {
    "nothing": b"",
    "half": b'{"metadata": {',
    "bytes": b"\xff\xfe\x00",
    "text": b"hello",
    "two values": b"{} {}",
    "NaN": b'{"metadata": {"x": NaN}}',
    "infinity": b'{"metadata": {"x": -Infinity}}',
    "a float beyond floats": b'{"metadata": {"x": 1e999}}',
    "a number of 5000 digits": b'{"metadata": {"x": ' + b"9" * 5000 + b"}}",
    "a deep list": b'{"metadata": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "a deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "unclosed lists": b"[" * 200_000,
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "a quoted object": b'"{}"',
}
DOORS = ("/threads", "/threads/{thread}/runs", "/threads/{thread}/runs/wait", "/threads/{thread}/runs/stream", "/runs")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NOT_JSON)
def test_a_body_that_is_no_json_object_is_refused(name: str, door: str, host: HostProcess) -> None:
    thread = str(uuid4())
    assert said(post(host, door.format(thread=thread), NOT_JSON[name]), 422)
    assert is_absent(host, thread)


def test_json_of_another_content_type_is_refused_or_read_as_json(host: HostProcess) -> None:
    thread = str(uuid4())
    body = json.dumps({"thread_id": thread}).encode()
    answer = HTTP.post(f"{host.url}/threads", content=body, headers={"content-type": "text/plain"})
    assert (answer.status_code == 200) != is_absent(host, thread)


@pytest.mark.parametrize(
    "place, body, field",
    [
        ("/threads", {"thread_ids": "x"}, "thread_ids"),
        ("/threads", {"metadata": [1]}, "metadata"),
        ("/threads/{thread}/runs", {"assistant_id": "echo", "inputs": {}, "if_not_exists": "create"}, "inputs"),
        ("/threads/{thread}/runs", {"if_not_exists": "create"}, "assistant_id"),
        ("/threads/{thread}/runs", {"assistant_id": "echo", "if_not_exists": "maybe"}, "if_not_exists"),
        (
            "/threads/{thread}/runs",
            {"assistant_id": "echo", "stream_mode": "vales", "if_not_exists": "create"},
            "stream",
        ),
        ("/threads/{thread}/runs", {"assistant_id": "echo", "command": {"reply": 1}}, "command.reply"),
        (
            "/threads/{thread}/runs",
            {"assistant_id": "echo", "webhook": "http://x", "if_not_exists": "create"},
            "webhook",
        ),
    ],
)
def test_a_field_that_is_not_known_or_not_like_that_is_named(
    place: str, body: object, field: str, host: HostProcess
) -> None:
    thread = str(uuid4())
    assert field in said(post(host, place.format(thread=thread), body), 422)
    assert is_absent(host, thread)


def test_a_run_on_a_thread_that_does_not_exist_is_404(host: HostProcess) -> None:
    thread = str(uuid4())
    assert thread in said(post(host, f"/threads/{thread}/runs", {"assistant_id": "echo"}), 404)
    assert is_absent(host, thread)


# --- thread ids: one rule at every door ------------------------------------------------------------------------------

some_ids = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="aZ09._:-", min_size=1, max_size=255),
    st.text(alphabet="aZ09._:- /%\x00\né\ud800", max_size=8),
    st.integers(250, 260).map(lambda length: "a" * length),
    st.sampled_from([".", "..", "a/b", "a\n", " a", "%2e", "", "a" * 255, "a" * 256, "é"]),
)
door_settings = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@door_settings
@given(text=some_ids)
def test_http_takes_the_ids_that_the_rule_allows(text: str, host: HostProcess) -> None:
    allowed = THREAD_ID.fullmatch(text) is not None
    found = post(host, "/threads/search", {"ids": [text]})
    if allowed:
        assert found.json() == []
    else:
        assert "thread id" in said(found, 422) or "JSON" in found.text
        assert post(host, "/threads", {"thread_id": text}).status_code == 422
    if text.isprintable() and "/" not in text and text not in ("", ".", ".."):  # those are other paths
        answer = HTTP.get(f"{host.url}/threads/{quote(text, safe='')}")
        assert answer.status_code == (404 if allowed else 422), answer.text


@door_settings
@given(text=some_ids)
def test_grpc_takes_the_ids_that_the_rule_allows(text: str, host: HostProcess, store: StoreHostStub) -> None:
    if "\ud800" in text or not _is_unicode(text):
        return  # protobuf has no such text
    reply = store.Call(StoreRequest(thread_id=text, get=GetCheckpoint()))
    if THREAD_ID.fullmatch(text):
        assert reply.WhichOneof("kind") == "found"
    else:
        assert reply.error.code == InvalidInput.code
        assert "thread" in reply.error.message


@door_settings
@given(text=some_ids)
def test_the_sdk_takes_the_ids_that_the_rule_allows(text: str, host: HostProcess) -> None:
    saver = AgentVisorCheckpointer(endpoint=host.url)
    config: Any = {"configurable": {"thread_id": text}}
    if THREAD_ID.fullmatch(text):
        assert saver.get_tuple(config) is None
    else:
        with pytest.raises(InvalidInput, match="thread id"):
            saver.get_tuple(config)


@pytest.mark.parametrize("thread", ["a", "...", ".a", "A.b_c:d-e", "0", "-", "x" * 255])
def test_a_thread_of_any_allowed_id_can_be_made_used_and_deleted(thread: str, host: HostProcess) -> None:
    client = client_of(host)
    client.threads.create(thread_id=thread, if_exists="do_nothing")
    assert [one["thread_id"] for one in client.threads.search(ids=[thread])] == [thread]
    assert client.threads.get(thread)["thread_id"] == thread
    client.threads.delete(thread)


@pytest.fixture(scope="module")
def store(host: HostProcess) -> Generator[StoreHostStub]:
    """The host's gRPC end, without the SDK before it."""
    with grpc.insecure_channel(HTTP.get(f"{host.url}/info").json()["grpc"]) as channel:
        yield StoreHostStub(channel)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- the store's own door: what an SDK would not send ----------------------------------------------------------------


def blob(**fields: Any) -> store_pb2.Blob:
    given = {"key": b"k" * 32, "type": "bytes", "encoding": store_pb2.ENCODING_RAW, "data": b"x", "size": 1, **fields}
    return store_pb2.Blob(**given)


GARBAGE = {
    "nothing": StoreRequest(),
    "a checkpoint without an id": StoreRequest(put=store_pb2.PutCheckpoint()),
    "a blob that is not what its key says": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[blob(data=b"other", size=5)],
        )
    ),
    "a key that is none": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[blob(key=b"short")],
        )
    ),
    "a difference from nothing": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[blob(encoding=store_pb2.ENCODING_PATCH, base=b"b" * 32, depth=1)],
        )
    ),
    "a size that is a lie": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[blob(size=1 << 50)],
        )
    ),
    "a zip bomb": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[blob(encoding=store_pb2.ENCODING_ZSTD, data=compress(bytes(100_000_000), level=1), size=60_000_000)],
        )
    ),
    "bytes that are no zstd": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[blob(encoding=store_pb2.ENCODING_ZSTD, data=b"garbage")],
        )
    ),
    "an encoding of the future": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(checkpoint_id="c"),
            blobs=[store_pb2.Blob.FromString(blob().SerializeToString() + b"\x18\x63")],
        )
    ),
    "a channel whose value nobody sent": StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(
                checkpoint_id="c", channels=[store_pb2.ChannelValue(channel="x", key=b"k" * 32)]
            )
        )
    ),
    "a record over its limit": StoreRequest(
        put=store_pb2.PutCheckpoint(checkpoint=store_pb2.Checkpoint(checkpoint_id="c", record=b"x" * 600 * KB))
    ),
    "a control write over its limit": StoreRequest(
        put_writes=store_pb2.TaskWrites(
            checkpoint_id="c", task_id="t", writes=[store_pb2.Write(idx=-3, channel="q", data=os.urandom(300 * KB))]
        )
    ),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_store_request_that_cannot_be_is_refused_and_creates_nothing(
    name: str, host: HostProcess, store: StoreHostStub
) -> None:
    request = StoreRequest()
    request.CopyFrom(GARBAGE[name])
    request.thread_id = str(uuid4())
    reply = store.Call(request)
    assert reply.error.code not in ("", Internal.code), reply
    assert reply.error.message
    assert is_absent(host, request.thread_id)


def test_a_value_over_the_hosts_limit_creates_nothing(host: HostProcess) -> None:
    thread = str(uuid4())
    saver = AgentVisorCheckpointer(endpoint=host.url)
    checkpoint: Any = {**empty_checkpoint(), "channel_values": {"document": os.urandom(300 * KB)}}
    checkpoint["channel_versions"] = {"document": "1"}
    with pytest.raises(ValueTooLarge, match="document"):
        saver.put({"configurable": {"thread_id": thread}}, checkpoint, {}, {"document": "1"})
    assert is_absent(host, thread)
    # Smaller, it is taken.
    checkpoint["channel_values"] = {"document": os.urandom(10 * KB)}
    saver.put({"configurable": {"thread_id": thread}}, checkpoint, {}, {"document": "1"})
    assert not is_absent(host, thread)


def struct(**fields: Any) -> Struct:
    """Numbers as they come, also those that JSON does not have."""
    made = Struct()
    for name, value in fields.items():
        if isinstance(value, float):
            made.fields[name].number_value = value
        else:
            made.fields[name].CopyFrom(value)
    return made


def deep(levels: int) -> Value:
    value = Value(number_value=1)
    for _ in range(levels):
        value = Value(list_value=ListValue(values=[value]))
    return value


def whole(value: bytes, kind: str = "msgpack") -> dict[str, Any]:
    """A blob with the right key, and a channel that names it."""
    key = blob_key(kind, value)
    sent = blob(key=key, type=kind, data=value, size=len(value))
    return {"channels": [store_pb2.ChannelValue(channel="x", key=key)], "blobs": [sent]}


STRANGE: dict[str, dict[str, Any]] = {
    "metadata that is NaN": {"metadata": struct(x=float("nan"))},
    "metadata that is infinite": {"metadata": struct(x=float("inf"))},
    "metadata without a value": {"metadata": struct(x=Value())},
    "metadata like our own wrappers": {
        "metadata": struct(x=Value(struct_value=struct(**{"@agentvisor:float": Value()})))
    },
    "deep metadata": {"metadata": struct(x=deep(25))},
    "a record that is no msgpack": {"type": "msgpack", "record": b"\xc1\xc1"},
    "a record of a type that does not exist": {"type": "pickle", "record": b"cos\nsystem\n"},
    "an empty record": {"type": "", "record": b""},
    "a time that is none": {"ts": "yesterday"},
    "an id that is none": {"checkpoint_id": "../../etc/passwd"},
    "an id of a thousand characters": {"checkpoint_id": "c" * 1000},
    "a namespace that is none": {"namespace": "a\x00|b:<script>"},
    "a parent that is not there": {"parent_id": "nowhere"},
    "a parent that is itself": {"checkpoint_id": "self", "parent_id": "self"},
    "a value that is no msgpack": whole(b"\xc1"),
    "a value that ends too soon": whole(b"\xdf\xff\xff\xff\xff"),
    "a value that is deep": whole(b"\x91" * 100_000 + b"\x01"),
    "a value that is pickle": whole(b"cos\nsystem\n(S'id'\ntR.", "pickle"),
    "a value that is no JSON": whole(b"{NaN", "json"),
    "a number that JSON does not have": whole(b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
    "text that is no UTF-8": whole(b"\xa2\xff\xfe"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_whatever_a_writer_stores_its_thread_can_still_be_shown(
    name: str, host: HostProcess, store: StoreHostStub
) -> None:
    thread, fields = str(uuid4()), dict(STRANGE[name])
    blobs = fields.pop("blobs", [])
    checkpoint = store_pb2.Checkpoint(**{"checkpoint_id": "1f0", "ts": "2026-11-30T08:00:00Z", **fields})
    reply = store.Call(StoreRequest(thread_id=thread, put=store_pb2.PutCheckpoint(checkpoint=checkpoint, blobs=blobs)))
    if reply.HasField("error"):
        assert reply.error.code != Internal.code, reply.error.message
        assert is_absent(host, thread)
        return
    for place in ("", "/state", "/history", f"/history?checkpoint_ns={quote(checkpoint.namespace, safe='')}"):
        shown = HTTP.get(f"{host.url}/threads/{thread}{place}")
        assert shown.status_code == 200, (place, shown.text)
    found = post(host, "/threads/search", {"ids": [thread]})
    assert found.status_code == 200, found.text


# --- sizes ---------------------------------------------------------------------------------------------------------


def test_an_input_of_10_mb_is_refused(host: HostProcess) -> None:
    thread, answer = start(host, "echo", input={"document": "x" * 10_000_000})
    assert "http.max_body" in said(answer, 413)
    assert is_absent(host, thread)


def test_an_input_over_its_limit_is_refused_by_name(host: HostProcess) -> None:
    thread, answer = start(host, "echo", input={"document": "x" * 2_000_000})
    message = said(answer, 413)
    assert "input" in message
    assert "storage.max_input" in message
    assert is_absent(host, thread)


def test_a_value_over_its_limit_names_its_channel_and_leaves_the_checkpoints_before(host: HostProcess) -> None:
    config = {"configurable": {"graph": "large:graph_of_one"}}
    thread, error = failed_run(host, "graph", input={"size": 300 * KB}, config=config)
    assert error["error"] == "ValueTooLarge"
    assert "document" in error["message"]
    assert "storage.max_inline_value" in error["message"]
    client = client_of(host)
    state = client.threads.get_state(thread)
    assert state["next"] == ["load"]
    assert "document" not in state["values"]
    # With a value that fits, the thread goes on from there.
    client.threads.get_history(thread)
    values = client.runs.wait(thread, "graph", input={"size": 10 * KB}, config=config)
    assert values["size"] == 10 * KB


def test_a_state_over_its_limit_is_refused_and_the_thread_stays_readable(host: HostProcess) -> None:
    config = {"configurable": {"graph": "large:graph_of_many"}}
    thread, error = failed_run(host, "graph", input={"size": 90 * KB, "times": 12}, config=config)
    assert error["error"] == "StateTooLarge"
    assert "storage.max_state" in error["message"]
    client = client_of(host)
    before = client.threads.get_history(thread, limit=100)
    assert 3 <= len(before[0]["values"]["pieces"]) <= 6
    assert client.threads.get(thread)["status"] == "error"
    assert [len(one["values"]["pieces"]) for one in before if one["values"].get("pieces")] == sorted(
        (len(one["values"]["pieces"]) for one in before if one["values"].get("pieces")), reverse=True
    )


def test_an_integer_that_no_channel_can_hold_names_the_channel(host: HostProcess) -> None:
    config = {"configurable": {"graph": "large:graph_of_a_number"}}
    thread, error = failed_run(host, "graph", input={"size": 1}, config=config)
    assert error["error"] == "InvalidInput"
    assert "'number'" in error["message"]
    assert client_of(host).threads.get_state(thread)["next"] == ["count"]


def test_a_plain_agent_gets_integers_of_any_size(host: HostProcess) -> None:
    # Not by LangGraph's client, whose JSON ends at 64 bits.
    answer = post(host, "/runs/wait", {"assistant_id": "echo", "input": {"n": 10**30}})
    assert answer.json()["echo"] == {"n": 10**30}
