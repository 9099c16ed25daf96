"""`agentvisor encryption-key`: keys that encrypt what Temporal and external storage see: made, and found in use."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from agentvisor.cli.dev import ConfigPath, TemporalAddress
from agentvisor.cli.options import AsJson
from agentvisor.cli.progress import progress
from agentvisor.cli.show import print_json, print_table

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


def used(
    *,
    config: ConfigPath = None,
    temporal_address: TemporalAddress = None,
    json: AsJson = False,
) -> None:
    """List what each key is still needed for: threads, crons, objects of external storage. Decrypts nothing.

    A key that nothing needs any more, nor an execution that Temporal keeps after its end, may go.

    Example: agentvisor encryption-key used
    """
    import asyncio
    import os

    from agentvisor.host.codec.client import keyring_of
    from agentvisor.host.codec.used import PLAIN, Uses, keys_used
    from agentvisor.host.config import load_config
    from agentvisor.host.external.backend import open_backend
    from agentvisor.host.temporal_client import client_beside

    loaded = load_config(config, environ=os.environ, overrides={"temporal.address": temporal_address})
    storage, ring = loaded.storage, keyring_of(loaded.encryption)

    async def looked() -> Uses:
        backend = open_backend(storage.url, storage.options) if storage.url is not None else None
        with progress("looking", None) as advance:
            return await keys_used(await client_beside(loaded), backend, advance)

    uses = asyncio.run(looked())
    here = {one.id: "decrypts" for one in loaded.encryption.keys}
    if ring.writing is not None:
        here[ring.writing.id] = "encrypts"
    here |= {one: "is missing" for one in uses.keys if one not in here}
    if PLAIN in here:
        here[PLAIN] = "needs none"
    columns = ("key", "here", "threads", "crons", "objects")
    rows = [(one, role, uses.threads[one], uses.crons[one], uses.objects[one]) for one, role in here.items()]
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    print_table(columns, [(key or "not encrypted", role, *map(str, numbers)) for key, role, *numbers in rows])


def _variable(name: str) -> str:
    return "".join(one if one.isalnum() else "_" for one in name).upper()
