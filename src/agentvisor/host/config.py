"""Loads the configuration: a file, then AGENTVISOR_* variables, then options; the only reader of the environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from agentvisor.host.config_complaints import complaints
from agentvisor.host.config_encryption import looked_up
from agentvisor.host.config_error import ConfigError
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.config_langgraph import env_file
from agentvisor.host.config_origin import Origin
from agentvisor.host.config_sources import Value, from_environment, from_file, from_options
from agentvisor.host.config_tree import AgentConfig, Config, TemporalConfig

__all__ = [
    "FILE_NAMES",
    "AgentConfig",
    "Config",
    "ConfigError",
    "files_read",
    "find_config_file",
    "http_in_force",
    "load_config",
    "load_with_origins",
]

FILE_NAMES = ("agentvisor.yaml", "langgraph.json")
"""What is looked for in a folder, in this order."""


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
    return load_with_origins(path, environ=environ, overrides=overrides)[0]


def load_with_origins(
    path: Path | None, *, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None
) -> tuple[Config, Mapping[str, Origin]]:
    """As `load_config`, with where each value that is no default was set, by its file key (agents: `agents.NAME`)."""
    place = path or Path.cwd()
    if not place.exists():
        raise ConfigError(f"{place} does not exist", file=str(place))
    file = find_config_file(place) if place.is_dir() else place
    base = (file.parent if file else place).resolve()
    values = [
        *(from_file(file, environ) if file else ()),
        *from_environment(environ),
        *from_options(overrides or {}),
    ]
    tree: dict[str, object] = {"base_dir": base, "temporal_variables": _of_temporal(environ)}
    origins: dict[str, Origin] = {}
    for value in values:
        _put(tree, value)
        origins[".".join(value.path)] = value.origin
    try:
        return _placed(Config.model_validate(tree), environ), origins
    except ValidationError as error:
        raise ConfigError("\n".join(complaints(error, origins, Config))) from error


def _of_temporal(environ: Mapping[str, str]) -> dict[str, str]:
    """Temporal's own variables; AgentVisor's begin otherwise."""
    return {name: text for name, text in environ.items() if name.startswith("TEMPORAL_") and text}


def http_in_force(folder: Path, *, environ: Mapping[str, str]) -> HttpConfig:
    """Where a host that is started in this folder listens; its agents are not looked at, one may be half written.

    Raises:
        ConfigError: as `load_config`, for the file's keys and for what is set under http.
    """
    file = find_config_file(folder)
    # A langgraph.json says nothing of HTTP.
    stated = from_file(file, environ) if file is not None and file.suffix != ".json" else ()
    tree: dict[str, object] = {"http": {}}
    origins: dict[str, Origin] = {}
    for value in (*stated, *from_environment(environ)):
        if value.path[0] == "http":
            _put(tree, value)
            origins[value.path[-1]] = value.origin
    try:
        return HttpConfig.model_validate(tree["http"])
    except ValidationError as error:
        raise ConfigError("\n".join(f"http.{one}" for one in complaints(error, origins, HttpConfig))) from error


def find_config_file(folder: Path) -> Path | None:
    """The configuration file of a folder, if it has one."""
    return next((folder / name for name in FILE_NAMES if (folder / name).is_file()), None)


def files_read(folder: Path) -> list[Path]:
    """Files that a host in this folder reads when it starts, or would if they were there; never again after it."""
    files = [folder / name for name in FILE_NAMES]
    file = find_config_file(folder)
    named = env_file(file) if file is not None and file.suffix == ".json" else None
    return [*files, named] if named is not None else files


def _put(tree: dict[str, object], value: Value) -> None:
    for key in value.path[:-1]:
        tree = cast("dict[str, object]", tree.setdefault(key, {}))
    tree[value.path[-1]] = value.value


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
    placed = {
        "agents": agents,
        "dev": dev,
        "http": http,
        "temporal": _placed_temporal(config),
        "encryption": encryption,
    }
    return config.model_copy(update=placed)


def _placed_temporal(config: Config) -> TemporalConfig:
    base, temporal = config.base_dir, config.temporal
    files = {name: base / file.expanduser() for name, file in temporal.tls.files.items()}
    own = {
        name: base / file.expanduser()
        for name, file in (("config_file", temporal.config_file), ("api_key_file", temporal.api_key_file))
        if file is not None
    }
    return temporal.model_copy(update={**own, "tls": temporal.tls.model_copy(update=files)} if files else own)


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
