"""The configuration in force, as it may be shown: every value with where it came from, and no secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from pydantic import BaseModel, SecretStr

from agentvisor.host.config_origin import DEFAULT, Origin
from agentvisor.host.config_settings import SETTINGS, shown, unit_of
from agentvisor.host.config_tree import AgentConfig, Config
from agentvisor.host.external.backend import shown as shown_url


@dataclass(frozen=True, slots=True)
class Shown:
    """One value in force."""

    key: str
    text: str
    """As it would be written; of a secret, whether it is set."""
    value: object
    """For programs: a number, a text, true, a list, null; of a secret, whether it is set."""
    is_secret: bool
    origin: Origin


def view(config: Config, origins: Mapping[str, Origin]) -> Iterator[Shown]:
    """Agents first, then every setting in the order of the tree."""
    for name, agent in config.agents.items():
        origin = origins.get(f"agents.{name}", DEFAULT)
        yield from _agent(f"agents.{name}", agent, origin)
    for path, setting in SETTINGS.items():
        if path != "agents":
            value = _value(config, path)
            yield _shown(path, value, setting.unit, origins.get(path, DEFAULT), is_secret=setting.is_secret)


def _agent(path: str, agent: AgentConfig, origin: Origin) -> Iterator[Shown]:
    for name, field in AgentConfig.model_fields.items():
        value: object = getattr(agent, name)
        default: object = field.get_default(call_default_factory=True, validated_data={})
        if value != default:
            yield _shown(f"{path}.{name}", value, unit_of(field), origin, is_secret=not field.repr)


def _value(config: Config, path: str) -> object:
    found: object = config
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _shown(key: str, value: object, unit: str, origin: Origin, *, is_secret: bool) -> Shown:
    if is_secret:
        names = _names(value)
        told: object = names if names is not None else bool(value)
        text = ", ".join(names) + " (values are not shown)" if names else "set (not shown)" if value else "not set"
        return Shown(key, text, told, is_secret=True, origin=origin)
    if key == "storage.url" and isinstance(value, str):
        value = shown_url(value)
    return Shown(key, shown(value, unit), _plain(value, unit), is_secret=False, origin=origin)


def _names(value: object) -> list[str] | None:
    """Of a table whose values are secret, or of keys, what they are called."""
    match value:
        case SecretStr():
            return None
        case dict():
            return [str(name) for name in cast("dict[object, object]", value)]
        case list():
            return [str(getattr(one, "name", None) or getattr(one, "id", "")) for one in cast("list[object]", value)]
        case _:
            return None


def _plain(value: object, unit: str) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            return shown(value, unit)
        case datetime():
            return value.isoformat()
        case Path():
            return str(value)
        case list():
            return [_plain(one, unit) for one in cast("list[object]", value)]
        case dict():
            table = cast("dict[object, object]", value)
            return {str(name): _plain(one, unit) for name, one in table.items()}
        case BaseModel():
            return value.model_dump(mode="json")
        case _:
            return str(value)
