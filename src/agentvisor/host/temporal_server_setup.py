"""Makes a cluster ready for hosts: the namespace, where that is asked for, and our search attributes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import AgentVisorError, InvalidInput, PermissionRefused, Unavailable
from agentvisor.host.temporal_server_ready import (
    SEARCH_ATTRIBUTES,
    how_to_register,
    missing_search_attributes,
    no_namespace,
    register_search_attributes,
    unknown_to_visibility,
)

_RPC_TIMEOUT = timedelta(seconds=10)
_PATIENCE = 60.0
"""Seconds until every part of a cluster knows of a new namespace; Temporal's caches are asked anew after ten."""
_PAUSE = 0.25
_NO_RIGHT = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a cluster needs, and what became of it."""

    what: str
    done: str
    changed: bool


async def set_up(client: Client, *, retention: timedelta | None, dry_run: bool) -> AsyncIterator[Step]:
    """Do what is missing; what is there stays as it is.

    Args:
        client: of the namespace that is to be.
        retention: how long a namespace that is made keeps executions that have ended; None: none is made.
        dry_run: say what would be done, and do nothing.

    Raises:
        NotFound: there is no such namespace, and none is to be made.
        PermissionRefused: this host may not do it; with the command for somebody who may.
        Unavailable: the server does not answer.
    """
    there = await _has_namespace(client)
    if there:
        yield Step(f"namespace {client.namespace}", "is there", changed=False)
    else:
        if retention is None:
            raise no_namespace(client.namespace)
        if not dry_run:
            await _make_namespace(client, retention)
        kept = f"keeps executions that have ended for {retention.total_seconds() / 3600:g} hours"
        yield Step(
            f"namespace {client.namespace}", f"{'would be made' if dry_run else 'was made'}, {kept}", changed=True
        )
    missing = await _missing(client) if there else list(SEARCH_ATTRIBUTES)
    if missing and not dry_run:
        await _register(client, missing, new_namespace=not there)
    for name in SEARCH_ATTRIBUTES:
        new = "would be registered" if dry_run else "was registered"
        yield Step(f"search attribute {name}", new if name in missing else "is there", changed=name in missing)


async def _has_namespace(client: Client) -> bool:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        await client.workflow_service.describe_namespace(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise _told(client, error, f"temporal operator namespace describe --namespace {client.namespace}") from error
    return True


async def _make_namespace(client: Client, retention: timedelta) -> None:
    seconds = int(retention.total_seconds())
    request = RegisterNamespaceRequest(
        namespace=client.namespace, workflow_execution_retention_period=Duration(seconds=seconds)
    )
    try:
        await client.workflow_service.register_namespace(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.ALREADY_EXISTS:
            return  # somebody was faster
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise InvalidInput(
                f"Temporal makes no namespace {client.namespace!r} like that: {error.message}"
            ) from error
        command = f"temporal operator namespace create --namespace {client.namespace} --retention {seconds}s"
        raise _told(
            client, error, f"{command} (in Temporal Cloud: on its page, or with tcld namespace create)"
        ) from error


async def _missing(client: Client) -> list[str]:
    try:
        return await missing_search_attributes(client)
    except RPCError as refused:
        try:
            return await unknown_to_visibility(client)
        except RPCError:
            raise _told(client, refused, how_to_register(client.namespace, SEARCH_ATTRIBUTES)) from refused


async def _register(client: Client, missing: list[str], *, new_namespace: bool) -> None:
    until = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        try:
            await register_search_attributes(client)
            if not await unknown_to_visibility(client):
                return
            failed: Exception | None = None
        except RPCError as error:
            # A namespace that is new is not known to every part of the server at once.
            if error.status in _NO_RIGHT or not (new_namespace and error.status is RPCStatusCode.NOT_FOUND):
                raise _told(client, error, how_to_register(client.namespace, missing)) from error
            failed = error
        if asyncio.get_running_loop().time() > until:
            raise Unavailable(
                f"Temporal does not know the search attributes {_PATIENCE:g} s after they were registered: run "
                "agentvisor setup again"
            ) from failed
        await asyncio.sleep(_PAUSE)


def _told(client: Client, error: RPCError, command: str) -> AgentVisorError:
    said = f"{error.status.name}: {error.message}"
    if error.status in (*_NO_RIGHT, RPCStatusCode.UNIMPLEMENTED):
        return PermissionRefused(
            f"this host may not do that in Temporal namespace {client.namespace!r} ({said}). For somebody who may: "
            f"{command}"
        )
    return Unavailable(f"Temporal did not do what setup needs ({said}): is it well? By hand: {command}")
