"""The table of all settings: file key, environment variable, default, unit; docs and the loader are made from it."""

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import cast

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from agentvisor.host.config_tree import Config
from agentvisor.host.config_units import format_duration, format_size, parse_duration, parse_size

PREFIX = "AGENTVISOR_"
NOT_SETTINGS = frozenset({"base_dir", "temporal_variables"})
"""Fields of the tree that loading fills in."""

OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "http.host": "--host",
        "http.port": "--port",
        "temporal.address": "--temporal-address",
        "dev.temporal_port": "--temporal-port",
        "dev.temporal_ui_port": "--temporal-ui-port",
        "dev.data_dir": "--data-dir",
    }
)
"""Settings that commands have an option for."""

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
    is_secret: bool = False
    """Whether its value is shown nowhere."""


def _settings(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        if name in NOT_SETTINGS:
            continue
        path = f"{prefix}{name}"
        if (section := section_of(model, name)) is not None:
            yield from _settings(section, f"{path}.")
            continue
        default: object = field.get_default(call_default_factory=True, validated_data={})
        unit = unit_of(field)
        yield Setting(
            path=path,
            variable=variable_of(path),
            unit=unit,
            default=shown(default, unit),
            description=field.description or "",
            is_table=isinstance(default, dict),
            is_secret=unit == "secret" or not field.repr,
        )


def section_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a field that is a section of its own, else None."""
    annotation = model.model_fields[name].annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def variable_of(path: str) -> str:
    """The environment variable of a file key: http.port is AGENTVISOR_HTTP_PORT."""
    return PREFIX + path.replace(".", "_").upper()


def unit_of(field: FieldInfo) -> str:
    """What values of a field are, in a word: duration, bytes, secret, number, path, or the texts that are allowed."""
    parts = [*_parts(field.annotation), *field.metadata]
    parsers = [getattr(part, "func", None) for part in parts]
    for parser, unit in ((parse_duration, "duration"), (parse_size, "bytes")):
        if parser in parsers:
            return unit
    for kind, unit in _UNITS.items():
        if kind in parts:
            return unit
    if choices := [
        str(one) for part in parts if typing.get_origin(part) is typing.Literal for one in typing.get_args(part)
    ]:
        return " or ".join(choices)
    return "text"


_UNITS: Mapping[object, str] = MappingProxyType(
    {SecretStr: "secret", list: "list", dict: "table", bool: "true or false", int: "number", Path: "path"}
)
"""In this order: a list of texts is a list."""


def _parts(annotation: object) -> Iterator[object]:
    """A type, and those that it is made of."""
    yield annotation
    yield typing.get_origin(annotation)
    if typing.get_origin(annotation) is not typing.Literal:
        for argument in typing.get_args(annotation):
            yield from _parts(argument)
    yield from getattr(annotation, "__metadata__", ())


def shown(value: object, unit: str) -> str:
    """A value as a person writes it."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case timedelta():
            return format_duration(value)
        case int() if unit == "bytes":
            return format_size(value)
        case SecretStr():
            return "set"
        case {} | []:
            return "empty"
        case list():
            return ", ".join(str(one) for one in cast("list[object]", value))
        case _:
            return str(value)


SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.path: setting for setting in _settings(Config, "")})
"""All settings of a host, by file key, in the order of the tree."""
