"""Payloads as Temporal's UI and command line may see them, in the JSON of Temporal's codec servers."""

from __future__ import annotations

import json
from typing import cast

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from temporalio.api.common.v1 import Payload, Payloads

from agentvisor.core.errors import AgentVisorError, Corrupt, InvalidInput
from agentvisor.host.codec.keyring import Keyring
from agentvisor.host.codec.payloads import ENCODING, named_place, opened


def shown(body: object, keyring: Keyring, namespace: str | None) -> dict[str, object]:
    """The payloads of a request, each decrypted for the place that it names; one that cannot be says so in its place.

    Args:
        body: `{"payloads": [...]}`; `InvalidInput` where it is something else.
        keyring: what decrypts.
        namespace: the one that is looked at, where that is known: payloads of others are not shown.
    """
    try:
        if not isinstance(body, dict):
            raise TypeError(f"it is a {type(body).__name__}")
        asked = ParseDict(cast("dict[str, object]", body), Payloads(), ignore_unknown_fields=True)
    except (ParseError, TypeError, AttributeError) as error:
        raise InvalidInput(f'the body is not `{{"payloads": [...]}}` of Temporal: {error}') from error
    return MessageToDict(Payloads(payloads=[_shown(one, keyring, namespace) for one in asked.payloads]))


def _shown(payload: Payload, keyring: Keyring, namespace: str | None) -> Payload:
    if payload.metadata.get("encoding") != ENCODING:
        return payload
    try:
        place = named_place(payload)
        if namespace is not None and place.namespace != namespace:
            raise Corrupt(f"this was written for {place}, and is looked at in namespace {namespace}")
        return opened(payload, keyring, place)
    except AgentVisorError as error:
        text = json.dumps(f"AgentVisor cannot decrypt this: {error.message}").encode()
        return Payload(metadata={"encoding": b"json/plain"}, data=text)
