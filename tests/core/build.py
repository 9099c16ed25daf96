"""Small records for tests of core."""

from collections.abc import Mapping

from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace, ThreadId
from agentvisor.core.records import Blob, Checkpoint, CheckpointKey, Encoding, Projection, TaskWrites, Write
from agentvisor.core.runs import Multitask, RestartPolicy, RunKind, RunSpec
from agentvisor.core.thread import Thread
from agentvisor.protocol.threads import spec_from_message
from agentvisor.protocol.v1 import run_pb2

DEFAULT_RESTART = RestartPolicy()


def checkpoint(
    number: int,
    *,
    namespace: str = "",
    channels: Mapping[str, BlobKey | None] | None = None,
    record: bytes = b"record",
) -> Checkpoint:
    parent = CheckpointId(f"{number - 1:04}") if number else None
    return Checkpoint(
        Namespace(namespace), CheckpointId(f"{number:04}"), parent, "msgpack", record, b"", channels or {}, "ts"
    )


def blob(name: str, *, base: str | None = None, data: bytes = b"value", depth: int = 0) -> Blob:
    encoding = Encoding.RAW if base is None else Encoding.PATCH
    return Blob(key(name), "bytes", encoding, data, None if base is None else key(base), len(data), depth)


def key(name: str) -> BlobKey:
    return BlobKey(name.encode())


def write(idx: int, value: str, channel: str = "c") -> Write:
    return Write(idx, channel, "bytes", value.encode(), 0)


def writes(number: int, *those: Write, task: str = "task", path: str = "", namespace: str = "") -> TaskWrites:
    return TaskWrites(Namespace(namespace), CheckpointId(f"{number:04}"), task, path, those)


def projection(number: int, *then: str, channels: tuple[str, ...] = ()) -> Projection:
    return Projection(ROOT, CheckpointId(f"{number:04}"), then, (), channels)


def at(number: int, namespace: str = "") -> CheckpointKey:
    return CheckpointKey(Namespace(namespace), CheckpointId(f"{number:04}"))


def spec(
    run_id: str = "r1",
    *,
    kind: RunKind = RunKind.AGENT,
    multitask: Multitask = Multitask.ENQUEUE,
    restart: RestartPolicy = DEFAULT_RESTART,
    body: bytes = b"body",
    resumes: bool = False,
) -> RunSpec:
    return spec_from_message(
        run_pb2.RunSpec(
            run_id=run_id,
            agent="agent",
            kind=run_pb2.RunKind.ValueType(kind),
            multitask_strategy=run_pb2.MultitaskStrategy.ValueType(multitask),
            restart=run_pb2.RestartPolicy(
                max_attempts=restart.max_attempts,
                initial_backoff_ms=restart.initial_backoff_ms,
                max_backoff_ms=restart.max_backoff_ms,
                max_elapsed_ms=restart.max_elapsed_ms,
                reset_on_progress=restart.reset_on_progress,
            ),
            timeout_ms=60_000,
            heartbeat_timeout_ms=10_000,
            input=body,
            command=b'{"resume": true}' if resumes else b"",
        )
    )


def thread() -> Thread:
    return Thread(ThreadId("t"), 0, 0, pending_writes_enabled=True, metadata=b"")
