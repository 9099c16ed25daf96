"""All commands in one place."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agentvisor import __version__
from agentvisor.cli import (
    agents,
    config,
    deployment,
    dev,
    doctor,
    encryption_key,
    interrupts,
    keys,
    migrate,
    run,
    runs,
    serve,
    setup,
    threads,
    torture,
)
from agentvisor.cli.exits import told

app = typer.Typer(
    name="agentvisor",
    help="Durable runs for LLM agents: kill anything at any time, lose nothing that was acknowledged.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("dev")(told(dev.dev))
app.command("serve")(told(serve.serve))
app.command("run")(told(run.run))
app.command("answer", help="The same as `interrupts answer`.")(told(interrupts.answer))
app.command("migrate")(told(migrate.migrate))
app.command("config")(told(config.config))
app.command("doctor")(told(doctor.doctor))
app.command("setup")(told(setup.setup))
app.command("torture")(told(torture.torture))
app.add_typer(threads.app, name="threads")
app.add_typer(runs.app, name="runs")
app.add_typer(interrupts.app, name="interrupts")
app.add_typer(agents.app, name="agents")
deployment.app.command("show")(told(deployment.show))
deployment.app.command("promote")(told(deployment.promote))
app.add_typer(deployment.app, name="deployment")
keys.app.command("new")(told(keys.new))
app.add_typer(keys.app, name="key")
encryption_key.app.command("new")(told(encryption_key.new))
encryption_key.app.command("used")(told(encryption_key.used))
app.add_typer(encryption_key.app, name="encryption-key")


@app.command("demo")
@told
def demo() -> None:
    """Kill a real agent, its host and its Temporal server in the middle of the work, and see it finish."""
    from agentvisor.cli.demo import run_demo

    sys.exit(run_demo())


def _version(asked: bool) -> None:  # noqa: FBT001 - typer's callback
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,  # noqa: FBT002
) -> None:
    """Durable runs for LLM agents: kill anything at any time, lose nothing that was acknowledged."""
