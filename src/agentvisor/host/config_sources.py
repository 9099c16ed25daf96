"""What a file, AGENTVISOR_* variables and options set, value by value; what they name and is no setting is refused."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from agentvisor.host.config_error import ConfigError
from agentvisor.host.config_langgraph import read_langgraph_json
from agentvisor.host.config_origin import Origin
from agentvisor.host.config_settings import NOT_SETTINGS, OPTIONS, PREFIX, PROCESS_VARIABLES, SETTINGS, section_of
from agentvisor.host.config_tree import AgentConfig, Config
from agentvisor.host.config_yaml import Lines, read_yaml


@dataclass(frozen=True)
class Value:
    """One value that somebody set."""

    path: tuple[str, ...]
    value: object
    origin: Origin


def from_file(file: Path, environ: Mapping[str, str]) -> Iterator[Value]:
    """What an agentvisor.yaml says, or what a langgraph.json means in this environment."""
    lines: Lines = {}
    if file.suffix == ".json":
        content: object = read_langgraph_json(file, environ)
    else:
        content, lines = read_yaml(file)
    if content is not None:
        yield from _leaves(Config, content, (), _Places(Origin("file", str(file)), lines))


def from_environment(environ: Mapping[str, str]) -> Iterator[Value]:
    """What AGENTVISOR_* variables say; empty ones say nothing."""
    paths = {setting.variable: path for path, setting in SETTINGS.items()}
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or not text or variable in PROCESS_VARIABLES:
            continue
        if variable not in paths:
            nearest = difflib.get_close_matches(variable, paths, n=1)
            raise ConfigError(f"environment variable {variable} names no setting{did_you_mean(nearest)}")
        path = paths[variable]
        origin = Origin("variable", variable)
        if SETTINGS[path].is_table:
            content = _json(text, origin)
            for key in reversed(path.split(".")):
                content = {key: content}
            yield from _leaves(Config, content, (), _Places(origin, {}))
        else:
            yield Value(tuple(path.split(".")), text, origin)


def from_options(overrides: Mapping[str, object]) -> Iterator[Value]:
    """What was typed; None was not."""
    for path, value in overrides.items():
        if path not in SETTINGS:
            raise _unknown_key(tuple(path.split(".")), Config, Origin("option", path))
        if value is not None:
            yield Value(tuple(path.split(".")), value, Origin("option", OPTIONS.get(path, f"for {path}")))


def did_you_mean(nearest: list[str]) -> str:
    """The end of an error about a name that does not exist."""
    return f"; did you mean {nearest[0]}?" if nearest else ""


@dataclass(frozen=True)
class _Places:
    """Where the values of one source are."""

    source: Origin
    lines: Lines

    def of(self, path: tuple[str, ...]) -> Origin:
        return replace(self.source, line=self.lines.get(path))


def _leaves(model: type[BaseModel], content: object, path: tuple[str, ...], places: _Places) -> Iterator[Value]:
    """Every value under known keys; sections recurse, an agent is one value."""
    table = _table(content)
    if table is None:
        origin = places.of(path)
        where = f"{'.'.join(path)} in {origin}" if path else str(origin)
        raise ConfigError(f"{where} must be a table of keys, not {_kind(content)}")
    for key, value in table.items():
        here = (*path, str(key))
        if not isinstance(key, str) or key not in model.model_fields or key in NOT_SETTINGS:
            raise _unknown_key(here, model, places.of(here))
        section = section_of(model, key)
        # In YAML a table whose keys are all commented out is null.
        if section is not None:
            yield from _leaves(section, {} if value is None else value, here, places)
        elif here == ("agents",):
            yield from _agents({} if value is None else value, places)
        else:
            yield Value(here, value, places.of(here))


def _agents(content: object, places: _Places) -> Iterator[Value]:
    agents = _table(content)
    if agents is None:
        raise ConfigError(f"agents in {places.of(('agents',))} must be a table of names, not {_kind(content)}")
    for name, agent in agents.items():
        here = ("agents", str(name))
        for key in _table(agent) or ():
            if key not in AgentConfig.model_fields:
                raise _unknown_key((*here, str(key)), AgentConfig, places.of((*here, str(key))))
        yield Value(here, agent, places.of(here))


def _kind(content: object) -> str:
    """What stands where a table should; not the thing itself, which may be a secret."""
    return "a list" if isinstance(content, list) else "a text" if isinstance(content, str) else "a single value"


def _table(value: object) -> Mapping[object, object] | None:
    return cast("dict[object, object]", value) if isinstance(value, dict) else None


def _json(text: str, origin: Origin) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{origin} is not JSON: {error}") from error


def _unknown_key(path: tuple[str, ...], model: type[BaseModel], origin: Origin) -> ConfigError:
    *parents, key = path
    siblings = difflib.get_close_matches(key, model.model_fields.keys() - NOT_SETTINGS, n=1)
    nearest = [".".join((*parents, sibling)) for sibling in siblings]
    if not nearest:
        # The right key may stand in another section.
        by_name = {setting.rpartition(".")[2]: setting for setting in SETTINGS}
        nearest = [by_name[name] for name in difflib.get_close_matches(key, by_name, n=1)]
    return ConfigError(f"unknown key {'.'.join(path)} in {origin}{did_you_mean(nearest)}", key=".".join(path))
