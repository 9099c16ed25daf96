"""What `agentvisor.once` asks of the host, and what it makes of the answers."""

from __future__ import annotations

from agentvisor.core.effects import MAX_KEY, Effect, Place
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.effects import effect_from_message
from agentvisor.protocol.v1.store_pb2 import EffectFailure, EffectRequest, StoreReply, StoreRequest


def checked_key(key: object) -> str:
    """The key of an effect; `InvalidInput` where it is none."""
    if not isinstance(key, str):
        raise InvalidInput(f"the key of an effect is a string, not {type(key).__name__}", field="key")
    if not 0 < len(key) <= MAX_KEY:
        raise InvalidInput(f"the key of an effect has 1 to {MAX_KEY} characters, not {len(key)}", field="key")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"the key {key!r} is not valid Unicode text", field="key") from None
    return key


def intend(place: Place, *, again: bool = False, answers: int = 0) -> StoreRequest:
    request = _request(place)
    request.effect.intend, request.effect.answers = again, answers
    return request


def done(place: Place, result: bytes, answers: int) -> StoreRequest:
    request = _request(place)
    request.effect.result, request.effect.answers = result, answers
    return request


def unkept(place: Place, why: str, answers: int) -> StoreRequest:
    request = _request(place)
    request.effect.unkept, request.effect.answers = why, answers
    return request


def failed(place: Place, error: BaseException) -> StoreRequest:
    request = _request(place)
    said = str(error).encode("utf-8", "backslashreplace").decode()
    request.effect.failure.CopyFrom(EffectFailure(type=type(error).__qualname__, message=said[:2_000]))
    return request


def asked(place: Place) -> StoreRequest:
    request = _request(place)
    request.effect.asked = True
    return request


def awaited(place: Place) -> StoreRequest:
    request = _request(place)
    request.effect.awaited = True
    return request


def forget(place: Place) -> StoreRequest:
    request = _request(place)
    request.effect.forget = True
    return request


def _request(place: Place) -> StoreRequest:
    return StoreRequest(
        effect=EffectRequest(
            scope=place.scope,
            key=place.key,
            namespace=place.namespace,
            checkpoint_id=place.checkpoint_id or "",
            root_id=place.root_id or "",
        )
    )


def entry_of(reply: StoreReply) -> Effect | None:
    """The entry as it is after a request; None where there is none."""
    return effect_from_message(reply.effect.effect) if reply.effect.HasField("effect") else None
