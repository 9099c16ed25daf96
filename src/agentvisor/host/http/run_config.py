"""What a run's config and command may say: checked here, because in the agent's process it would be a failed run."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from agentvisor.core.errors import InvalidInput


def check_config(config: Mapping[str, JsonValue], thread_id: str | None) -> None:
    """Refuse what no agent can be started with, or what would lead to another thread; no thread id: a stateless run."""
    tags = config.get("tags")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise InvalidInput(f"config.tags must be a list of texts, not {_shown(tags)}", field="config.tags")
    for name in ("recursion_limit", "max_concurrency"):
        limit = config.get(name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise InvalidInput(
                f"config.{name} must be a whole number of at least 1, not {_shown(limit)}", field=f"config.{name}"
            )
    for section in ("configurable", "metadata"):
        if not isinstance(config.get(section) or {}, dict):
            raise InvalidInput(f"config.{section} must be an object", field=f"config.{section}")
    _check_configurable(_configurable(config), thread_id)


def _check_configurable(configurable: Mapping[str, JsonValue], thread_id: str | None) -> None:
    if configurable.get("thread_id") not in (None, thread_id):
        raise InvalidInput(
            "config.configurable.thread_id is another thread than the run's", field="config.configurable.thread_id"
        )
    for name, (kind, called) in _ADDRESS.items():
        if not isinstance(configurable.get(name), kind | None):
            raise InvalidInput(f"config.configurable.{name} must be {called}", field=f"config.configurable.{name}")


_ADDRESS: dict[str, tuple[type, str]] = {
    "checkpoint_ns": (str, "a text"),
    "checkpoint_id": (str, "a text"),
    "checkpoint_map": (dict, "an object"),
}


def configured_checkpoint(config: Mapping[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """The checkpoint to go on from that a checked config names, as LangGraph's own `invoke` takes it."""
    configurable = _configurable(config or {})
    return {name: configurable[name] for name in _ADDRESS if configurable.get(name)} or None


def check_unbound(config: Mapping[str, JsonValue]) -> None:
    """Refuse a checkpoint in the config of an assistant, which is for many threads: each has checkpoints of its own."""
    for name in sorted(_configurable(config).keys() & _ADDRESS.keys()):
        raise InvalidInput(
            f"config.configurable.{name} belongs to one thread, and an assistant is for all: name the checkpoint in "
            "the run",
            field=f"config.configurable.{name}",
        )


def check_command(command: Mapping[str, JsonValue]) -> None:
    """Refuse a command that says nothing, and one that goes nowhere; `command` holds the fields that were given."""
    if "resume" not in command and command.get("update") is None and command.get("goto") is None:
        raise InvalidInput("command is empty: give it resume, update or goto", field="command")
    goto = command.get("goto")
    targets = goto if isinstance(goto, list) else [] if goto is None else [goto]
    for target in targets:
        if not _is_target(target):
            raise InvalidInput(
                f'command.goto must name a node, or be {{"node": name, "input": value}}, or a list of these, '
                f"not {_shown(target)}",
                field="command.goto",
            )


def _is_target(target: JsonValue) -> bool:
    if isinstance(target, dict):
        return isinstance(target.get("node"), str) and bool(target["node"]) and target.keys() <= {"node", "input"}
    return isinstance(target, str) and bool(target)


def _configurable(config: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    configurable = config.get("configurable")
    return configurable if isinstance(configurable, dict) else {}


def _shown(value: JsonValue) -> str:
    return repr(value)[:80]
