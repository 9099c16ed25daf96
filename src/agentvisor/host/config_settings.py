"""The table of all settings: file key, environment variable, default, unit; docs and the loader are made from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import cast

from pydantic import BaseModel, SecretStr

from agentvisor.host.config_tree import Config
from agentvisor.host.config_units import format_duration, format_size, parse_duration, parse_size

PREFIX = "AGENTVISOR_"
NOT_SETTINGS = frozenset({"base_dir"})

PROCESS_VARIABLES = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "AGENT",
        "API_KEY",
        "ATTEMPT",
        "ENDPOINT",
        "CHANNEL_FD",
        "GUEST_ID",
        "RUN_ID",
        "THREAD_ID",
        "TICKET",
        "WORKSPACE",
    )
)
"""Variables that speak to one agent's process or to the SDK. They configure no host, and a host passes over them."""


@dataclass(frozen=True)
class Setting:
    """One leaf of the configuration's tree."""

    path: str
    variable: str
    unit: str
    default: str
    description: str
    is_table: bool
    """Whether it holds keys of its own choosing (agents); its variable then is JSON."""


def _settings(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        if name in NOT_SETTINGS:
            continue
        path = f"{prefix}{name}"
        if (section := section_of(model, name)) is not None:
            yield from _settings(section, f"{path}.")
            continue
        default: object = field.get_default(call_default_factory=True, validated_data={})
        units: dict[object, str] = {parse_duration: "duration", parse_size: "bytes"}
        parsers = [getattr(mark, "func", None) for mark in field.metadata]
        unit = next((units[parser] for parser in parsers if parser in units), "")
        yield Setting(
            path=path,
            variable=variable_of(path),
            unit=unit or _kind(default),
            default=_shown(default, unit),
            description=field.description or "",
            is_table=isinstance(default, dict),
        )


def section_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a field that is a section of its own, else None."""
    annotation = model.model_fields[name].annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def variable_of(path: str) -> str:
    """The environment variable of a file key: http.port is AGENTVISOR_HTTP_PORT."""
    return PREFIX + path.replace(".", "_").upper()


def _kind(default: object) -> str:
    match default:
        case bool():
            return "true or false"
        case int():
            return "number"
        case dict():
            return "table"
        case list():
            return "list"
        case _:
            return "text"


def _shown(default: object, unit: str) -> str:
    match default:
        case None:
            return "not set"
        case bool():
            return str(default).lower()
        case timedelta():
            return format_duration(default)
        case int() if unit == "bytes":
            return format_size(default)
        case SecretStr():
            return "secret"
        case dict() | []:
            return "empty"
        case list():
            return ", ".join(str(one) for one in cast("list[object]", default))
        case _:
            return str(default)


SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.path: setting for setting in _settings(Config, "")})
"""All settings of a host, by file key, in the order of the tree."""
