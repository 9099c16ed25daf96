"""Shelves of core to messages and back."""

from __future__ import annotations

from collections.abc import Iterable

from agentvisor.core.errors import Unavailable
from agentvisor.core.shelf import SHELF_VERSION, Change, ChangeKind, Item, Shelf, ShelfName, ShelfSettings
from agentvisor.protocol.v1 import items_pb2


def shelf_to_message(shelf: Shelf) -> items_pb2.Shelf:
    return items_pb2.Shelf(
        version=SHELF_VERSION,
        kind=shelf.name.kind,
        owner=shelf.name.owner,
        namespace=shelf.name.namespace,
        items=map(item_to_message, shelf.items.values()),
        revision=shelf.revision,
        settings=settings_to_message(shelf.settings),
        leftovers=shelf.leftovers,
    )


def shelf_from_message(message: items_pb2.Shelf) -> Shelf:
    """`Unavailable` where a newer version wrote it: the workflow task fails, so that a newer host takes the shelf."""
    if message.version > SHELF_VERSION:
        raise Unavailable(
            f"a shelf is of state version {message.version}, this host knows up to {SHELF_VERSION}: upgrade this host"
        )
    return Shelf(
        ShelfName(message.kind, message.owner, tuple(message.namespace)),
        {one.key: item_from_message(one) for one in message.items},
        message.revision,
        settings_from_message(message.settings),
        list(message.leftovers),
    )


def item_to_message(item: Item) -> items_pb2.ShelvedItem:
    return items_pb2.ShelvedItem(
        key=item.key,
        value=item.value,
        created_at_ms=item.created_at_ms,
        updated_at_ms=item.updated_at_ms,
        ttl_ms=item.ttl_ms,
        expires_at_ms=item.expires_at_ms,
        revision=item.revision,
    )


def item_from_message(message: items_pb2.ShelvedItem) -> Item:
    return Item(
        message.key,
        message.value,
        message.created_at_ms,
        message.updated_at_ms,
        message.ttl_ms,
        message.expires_at_ms,
        message.revision,
    )


def settings_to_message(settings: ShelfSettings) -> items_pb2.ShelfSettings:
    return items_pb2.ShelfSettings(
        max_bytes=settings.max_bytes,
        erase_after_ms=settings.erase_after_ms,
        linger_ms=settings.linger_ms,
        compact_events=settings.compact_events,
        compact_updates=settings.compact_updates,
    )


def settings_from_message(message: items_pb2.ShelfSettings) -> ShelfSettings:
    return ShelfSettings(
        message.max_bytes,
        message.erase_after_ms,
        message.linger_ms,
        message.compact_events,
        message.compact_updates,
    )


def changes_to_messages(changes: Iterable[Change]) -> list[items_pb2.ShelfChange]:
    messages: list[items_pb2.ShelfChange] = []
    for change in changes:
        message = items_pb2.ShelfChange(
            key=change.key, ttl_ms=change.ttl_ms, expected_revision=change.expected_revision
        )
        match change.kind:
            case ChangeKind.SET:
                message.set = change.value
            case ChangeKind.REMOVE:
                message.remove = True
            case ChangeKind.TOUCH:
                message.touch = True
        messages.append(message)
    return messages


def changes_from_messages(messages: Iterable[items_pb2.ShelfChange]) -> list[Change]:
    return [
        Change(
            _kind(one),
            one.key,
            one.set,
            one.ttl_ms,
            one.expected_revision if one.HasField("expected_revision") else None,
        )
        for one in messages
    ]


def _kind(message: items_pb2.ShelfChange) -> ChangeKind:
    match message.WhichOneof("change"):
        case "set":
            return ChangeKind.SET
        case "remove":
            return ChangeKind.REMOVE
        case "touch":
            return ChangeKind.TOUCH
        case _:
            raise Unavailable("a newer host has sent a change that this one does not know: upgrade this host")
