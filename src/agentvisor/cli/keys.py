"""`agentvisor key`: makes keys of owners. A key is shown once and kept nowhere: the configuration has its hash."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

app = typer.Typer(help="Keys of owners.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keys of owners."""


def new(
    *,
    owner: Annotated[str, typer.Option(help="Whose threads the key opens; any name, as of a user or a team.")],
    name: Annotated[
        str | None, typer.Option(help="Tells the key from the owner's others; made up when left out.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36500, help="After which it no longer counts.")] = None,
) -> None:
    """Make a key: prints it, this once, and what to add to agentvisor.yaml."""
    import yaml

    from agentvisor.core.owners import owner as checked
    from agentvisor.host.api_keys import hash_of, new_key

    key = new_key()
    hashed = hash_of(key)
    entry = {"name": name or f"{checked(owner)[:80]}-{hashed[-6:]}", "hash": hashed, "owner": checked(owner)}
    if days is not None:
        entry["expires"] = (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    typer.echo(f"The key, for its owner; it is shown this once and kept nowhere:\n\n  {key}\n")
    typer.echo("For agentvisor.yaml on every host (a host reads it when it starts):\n")
    typer.echo(
        yaml.safe_dump({"http": {"api_keys": [entry]}}, sort_keys=False, allow_unicode=True, width=200), nl=False
    )
