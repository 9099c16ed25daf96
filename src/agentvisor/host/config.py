"""Loads the configuration: a file, then AGENTVISOR_* variables, then options; the only reader of the environment."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ValidationError

from agentvisor.host.config_encryption import looked_up
from agentvisor.host.config_error import ConfigError
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.config_langgraph import read_langgraph_json
from agentvisor.host.config_settings import (
    NOT_SETTINGS,
    PREFIX,
    PROCESS_VARIABLES,
    SETTINGS,
    section_of,
    variable_of,
)
from agentvisor.host.config_tree import AgentConfig, Config
from agentvisor.host.config_yaml import read_yaml

__all__ = ["FILE_NAMES", "AgentConfig", "Config", "ConfigError", "find_config_file", "http_in_force", "load_config"]

FILE_NAMES = ("agentvisor.yaml", "langgraph.json")
"""What is looked for in a folder, in this order."""


@dataclass(frozen=True)
class _Value:
    path: tuple[str, ...]
    value: object
    origin: str


def load_config(
    path: Path | None, *, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None
) -> Config:
    """The configuration in force: options beat variables, variables beat the file, the file beats defaults.

    Args:
        path: a file, or a folder to look for one in; None looks in the working folder. A folder without a file gives
            the defaults, a file that is not there is an error.
        environ: the process's environment. AGENTVISOR_* variables that name no setting are errors; empty ones do not
            count.
        overrides: file key -> value, as given on the command line ({"http.port": 8091}); None does not count.

    Raises:
        ConfigError: a key that does not exist, with the nearest that does; or every value that is not allowed, a line
            each; always with where it was set.
    """
    place = path or Path.cwd()
    if not place.exists():
        raise ConfigError(f"{place} does not exist", file=str(place))
    file = find_config_file(place) if place.is_dir() else place
    base = (file.parent if file else place).resolve()
    values = [
        *(_from_file(file) if file else ()),
        *_from_environment(environ),
        *_from_options(overrides or {}),
    ]
    tree: dict[str, object] = {"base_dir": base}
    origins: dict[str, str] = {}
    for value in values:
        _put(tree, value)
        origins[".".join(value.path)] = value.origin
    try:
        return _placed(Config.model_validate(tree), environ)
    except ValidationError as error:
        raise ConfigError("\n".join(_complaints(error, origins))) from error


def http_in_force(folder: Path, *, environ: Mapping[str, str]) -> HttpConfig:
    """Where a host that is started in this folder listens; its agents are not looked at, one may be half written.

    Raises:
        ConfigError: as `load_config`, for the file's keys and for what is set under http.
    """
    file = find_config_file(folder)
    # A langgraph.json says nothing of HTTP.
    stated = _from_file(file) if file is not None and file.suffix != ".json" else ()
    tree: dict[str, object] = {"http": {}}
    origins: dict[str, str] = {}
    for value in (*stated, *_from_environment(environ)):
        if value.path[0] == "http":
            _put(tree, value)
            origins[value.path[-1]] = value.origin
    try:
        return HttpConfig.model_validate(tree["http"])
    except ValidationError as error:
        raise ConfigError("\n".join(f"http.{one}" for one in _complaints(error, origins))) from error


def find_config_file(folder: Path) -> Path | None:
    """The configuration file of a folder, if it has one."""
    return next((folder / name for name in FILE_NAMES if (folder / name).is_file()), None)


def _from_file(file: Path) -> Iterator[_Value]:
    if file.suffix == ".json":
        content: object = read_langgraph_json(file)
    else:
        content = read_yaml(file)
    if content is None:
        return
    yield from _leaves(Config, content, (), str(file))


def _leaves(model: type[BaseModel], content: object, path: tuple[str, ...], origin: str) -> Iterator[_Value]:
    """Every value under known keys; sections recurse, an agent is one value."""
    table = _table(content)
    if table is None:
        where = f"{'.'.join(path)} in {origin}" if path else origin
        raise ConfigError(f"{where} must be a table of keys, not {content!r}")
    for key, value in table.items():
        here = (*path, str(key))
        if not isinstance(key, str) or key not in model.model_fields or key in NOT_SETTINGS:
            raise _unknown_key(here, model, origin)
        section = section_of(model, key)
        # In YAML a table whose keys are all commented out is null.
        if section is not None:
            yield from _leaves(section, {} if value is None else value, here, origin)
        elif here == ("agents",):
            yield from _agents({} if value is None else value, origin)
        else:
            yield _Value(here, value, origin)


def _agents(content: object, origin: str) -> Iterator[_Value]:
    agents = _table(content)
    if agents is None:
        raise ConfigError(f"agents in {origin} must be a table of names, not {content!r}")
    for name, agent in agents.items():
        here = ("agents", str(name))
        for key in _table(agent) or ():
            if key not in AgentConfig.model_fields:
                raise _unknown_key((*here, str(key)), AgentConfig, origin)
        yield _Value(here, agent, origin)


def _table(value: object) -> Mapping[object, object] | None:
    return cast("dict[object, object]", value) if isinstance(value, dict) else None


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Value]:
    paths = {setting.variable: path for path, setting in SETTINGS.items()}
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or not text or variable in PROCESS_VARIABLES:
            continue
        if variable not in paths:
            nearest = difflib.get_close_matches(variable, paths, n=1)
            raise ConfigError(f"environment variable {variable} names no setting{_did_you_mean(nearest)}")
        path = paths[variable]
        origin = f"environment variable {variable}"
        if SETTINGS[path].is_table:
            content = _json(text, origin)
            for key in reversed(path.split(".")):
                content = {key: content}
            yield from _leaves(Config, content, (), origin)
        else:
            yield _Value(tuple(path.split(".")), text, origin)


def _json(text: str, origin: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{origin} is not JSON: {error}") from error


def _from_options(overrides: Mapping[str, object]) -> Iterator[_Value]:
    for path, value in overrides.items():
        if path not in SETTINGS:
            raise _unknown_key(tuple(path.split(".")), Config, "options")
        if value is not None:
            yield _Value(tuple(path.split(".")), value, f"option for {path}")


def _put(tree: dict[str, object], value: _Value) -> None:
    for key in value.path[:-1]:
        tree = cast("dict[str, object]", tree.setdefault(key, {}))
    tree[value.path[-1]] = value.value


def _unknown_key(path: tuple[str, ...], model: type[BaseModel], origin: str) -> ConfigError:
    *parents, key = path
    siblings = difflib.get_close_matches(key, model.model_fields.keys() - NOT_SETTINGS, n=1)
    nearest = [".".join((*parents, sibling)) for sibling in siblings]
    if not nearest:
        # The right key may stand in another section.
        by_name = {setting.rpartition(".")[2]: setting for setting in SETTINGS}
        nearest = [by_name[name] for name in difflib.get_close_matches(key, by_name, n=1)]
    return ConfigError(f"unknown key {'.'.join(path)} in {origin}{_did_you_mean(nearest)}", key=".".join(path))


def _did_you_mean(nearest: list[str]) -> str:
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _complaints(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False):
        path = ".".join(str(part) for part in problem["loc"] if part != "[key]")
        origin = next((origins[known] for known in _upwards(path) if known in origins), None)
        variable = f" ({variable_of(path)})" if path in SETTINGS and origin is None else ""
        where = f" (set in {origin})" if origin else ""
        key = f"{path}{variable}: " if path else ""
        yield f"{key}{problem['msg'].removeprefix('Value error, ')}{where}"


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]


def _placed(config: Config, environ: Mapping[str, str]) -> Config:
    """With every path absolute and every variable read: nothing depends on folder or environment after this."""
    base = config.base_dir
    agents = {name: _placed_agent(name, _with_inherited(agent, environ), base) for name, agent in config.agents.items()}
    dev = config.dev.model_copy(update={"data_dir": base / config.dev.data_dir.expanduser()})
    http, keys = config.http, config.http.jwt.jwks_file
    if keys is not None:
        jwt = http.jwt.model_copy(update={"jwks_file": base / keys.expanduser()})
        http = http.model_copy(update={"jwt": jwt})
    try:
        encryption = looked_up(config.encryption, base, environ)
    except ValueError as error:
        raise ConfigError(str(error), key="encryption.keys") from error
    return config.model_copy(update={"agents": agents, "dev": dev, "http": http, "encryption": encryption})


def _with_inherited(agent: AgentConfig, environ: Mapping[str, str]) -> AgentConfig:
    inherited = {name: environ[name] for name in agent.inherit_env if name in environ}
    return agent.model_copy(update={"env": inherited | agent.env})


def _placed_agent(name: str, agent: AgentConfig, base: Path) -> AgentConfig:
    target, _, attribute = agent.entrypoint.rpartition(":")
    folders = [base / folder.expanduser() for folder in agent.python_path]
    if not (target.endswith(".py") or "/" in target):
        return agent.model_copy(update={"python_path": folders})
    file = (base / Path(target).expanduser()).resolve()
    if not file.is_file():
        raise ConfigError(f"agents.{name}.entrypoint: there is no file {file}", key=f"agents.{name}.entrypoint")
    return agent.model_copy(update={"entrypoint": f"{file}:{attribute}", "python_path": folders})
