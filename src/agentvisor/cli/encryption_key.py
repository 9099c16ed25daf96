"""`agentvisor encryption-key`: makes keys that encrypt what Temporal and external storage see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

app = typer.Typer(help="Keys that encrypt what Temporal and external storage see.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keys that encrypt what Temporal and external storage see."""


def new(
    *,
    id: Annotated[str | None, typer.Option(help="Its name in agentvisor.yaml; today's date when left out.")] = None,
    bare: Annotated[bool, typer.Option("--bare", help="Print the key alone, as for a file or a secret store.")] = False,
) -> None:
    """Make a key: 32 random bytes. It is shown this once and kept nowhere; without it, nothing can be read again."""
    import base64
    import os

    from pydantic import ValidationError

    from agentvisor.core.errors import InvalidInput
    from agentvisor.host.config_encryption import EncryptionKeyConfig

    text = base64.b64encode(os.urandom(32)).decode()
    if bare:
        typer.echo(text)
        return
    name = id or datetime.now(UTC).strftime("%Y-%m-%d")
    try:
        EncryptionKeyConfig.model_validate({"id": name, "key": text})
    except ValidationError:  # whose words have the key's place among them
        raise InvalidInput(f"{name!r} is no id of a key: use 1 to 32 of A-Z a-z 0-9 . _ -") from None
    typer.echo(f"The key; it is shown this once and kept nowhere:\n\n  {text}\n")
    typer.echo("Keep it where secrets are kept: what it encrypts cannot be read without it.")
    typer.echo("With it in a variable of each host's environment, agentvisor.yaml has:\n")
    typer.echo(f'encryption:\n  keys:\n  - {{id: "{name}", env: ENCRYPTION_KEY_{_variable(name)}}}')


def _variable(name: str) -> str:
    return "".join(one if one.isalnum() else "_" for one in name).upper()
