"""Check `search-attributes`: thread search has what it asks Temporal's visibility for."""

from __future__ import annotations

from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.core.errors import Unavailable
from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.temporal_server_ready import (
    SEARCH_ATTRIBUTES,
    how_to_register,
    missing_search_attributes,
    unknown_to_visibility,
)

NAME = "search-attributes"


async def check_search_attributes(client: Client) -> Finding:
    """Listed where this host may list them, else by a search with each."""
    try:
        missing, listed = await missing_search_attributes(client), ""
    except Unavailable as error:
        what, _, advice = error.message.partition("; ")
        return failed(NAME, what, advice)
    except RPCError as refused:
        try:
            missing = await unknown_to_visibility(client)
        except RPCError as error:
            return failed(
                NAME,
                f"cannot be listed or searched by: {error.status.name}: {error.message}",
                "may this host search the namespace?",
            )
        listed = f" (found by searching: this host may not list them, {refused.status.name})"
    if missing:
        advice = f"agentvisor setup registers them; or: {how_to_register(client.namespace, missing)}"
        return failed(NAME, f"missing: {', '.join(missing)}{listed}", advice)
    if listed:
        return warning(NAME, f"{', '.join(SEARCH_ATTRIBUTES)} are there{listed}", "their types were not seen")
    return ok(NAME, f"{', '.join(SEARCH_ATTRIBUTES)} are there")
