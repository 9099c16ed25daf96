"""LangGraph's values to typed bytes and back, with the channel's name in every error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from agentvisor._langgraph.addressing import config_of
from agentvisor.client.encoding import Typed
from agentvisor.client.histories import FoundHistory
from agentvisor.client.known import CheckpointName, Version
from agentvisor.client.reads import FoundCheckpoint
from agentvisor.client.requests import place
from agentvisor.core.errors import Corrupt, InvalidInput
from agentvisor.protocol.metadata import metadata_from_struct


def dump(serde: SerializerProtocol, channel: str, value: object, name: CheckpointName) -> Typed:
    """Serialise a channel's value."""
    try:
        kind, data = serde.dumps_typed(value)
        # A bytearray is passed through as it is: it could change before it is sent.
        return kind, bytes(data)
    except Exception as error:
        raise InvalidInput(
            f"channel {channel!r} of {place(name)} cannot be serialised ({type(value).__name__}): {error}",
            channel=channel,
        ) from error


def dump_record(serde: SerializerProtocol, checkpoint: Checkpoint) -> Typed:
    """Serialise a checkpoint without its channel values."""
    return serde.dumps_typed({key: value for key, value in checkpoint.items() if key != "channel_values"})


def read_versions(serde: SerializerProtocol, record: Typed) -> Mapping[str, Version]:
    """The channel versions in a record."""
    return cast("Checkpoint", serde.loads_typed(record))["channel_versions"]


def load_tuple(serde: SerializerProtocol, found: FoundCheckpoint) -> CheckpointTuple:
    """What LangGraph reads of a checkpoint."""
    checkpoint = cast("Checkpoint", serde.loads_typed(found.record))
    checkpoint["channel_values"] = {
        channel: _load(serde, channel, value, found.name) for channel, value in found.values.items()
    }
    return CheckpointTuple(
        config=config_of(found.name),
        checkpoint=checkpoint,
        metadata=cast("CheckpointMetadata", cast("object", metadata_from_struct(found.metadata))),
        parent_config=config_of(found.name._replace(checkpoint_id=found.parent_id)) if found.parent_id else None,
        pending_writes=[
            (task_id, channel, _load(serde, channel, value, found.name)) for task_id, channel, value in found.pending
        ],
    )


def load_history(
    serde: SerializerProtocol, channel: str, found: FoundHistory | None, name: CheckpointName
) -> DeltaChannelHistory:
    """What LangGraph reads of a delta channel's history; nothing was found where the checkpoint does not exist."""
    if found is None:
        return {"writes": []}
    writes = [(task_id, channel, _load(serde, channel, value, name)) for task_id, _, value in found.writes]
    if found.seed is None:
        return {"writes": writes}
    return {"writes": writes, "seed": _load(serde, channel, found.seed, name)}


def _load(serde: SerializerProtocol, channel: str, value: Typed, name: CheckpointName) -> object:
    try:
        return serde.loads_typed(value)
    except Exception as error:
        raise Corrupt(
            f"channel {channel!r} of {place(name)}, checkpoint {name.checkpoint_id}, cannot be loaded: {error}",
            channel=channel,
        ) from error
