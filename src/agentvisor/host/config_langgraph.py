"""Reads a project's langgraph.json as if it were an agentvisor.yaml, so that LangGraph projects start unmodified."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import structlog

from agentvisor.host.config_error import ConfigError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.config")

_USED = frozenset({"$schema", "dependencies", "env", "graphs", "store"})
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][\w.]*)\s*=(?P<value>.*)")
_QUOTED = re.compile(r"""\s*(?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)")\s*(?:\#.*)?""")
_COMMENT = re.compile(r"\s+#.*")
_LONGEST_TTL = 5_000_000
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_langgraph_json(path: Path) -> dict[str, object]:
    """The agents of a langgraph.json, in the form of our own file; keys we have no use for are logged and ignored."""
    project = _table(_json(path), "the file", path)
    if ignored := sorted(project.keys() - _USED):
        log.info("langgraph_keys_ignored", file=str(path), keys=ignored)
    graphs = _table(project.get("graphs", {}), "graphs", path)
    if not graphs:
        raise ConfigError(f'{path}: graphs names no graph: write {{"graphs": {{"agent": "./agent.py:graph"}}}}')
    shared = {
        "framework": "langgraph",
        "env": _environment(project.get("env", {}), path),
        "python_path": _folders(project.get("dependencies", []), path),
    }
    return {
        "agents": {name: {"entrypoint": _entrypoint(name, graph, path), **shared} for name, graph in graphs.items()},
        **_store(project.get("store"), path),
    }


def _store(given: object, path: Path) -> dict[str, object]:
    """What it says of how long items live; their index of meanings is logged and ignored."""
    store = _table(given or {}, "store", path)
    if ignored := sorted(store.keys() - {"ttl"}):
        log.warning("store_index_ignored", file=str(path), keys=ignored, hint="queries of the store rank nothing")
    ttl = _table(store.get("ttl") or {}, "store.ttl", path)
    found: dict[str, object] = {}
    if (minutes := ttl.get("default_ttl")) is not None:
        if not isinstance(minutes, int | float) or not 0 < minutes < _LONGEST_TTL:
            raise ConfigError(
                f"{path}: store.ttl.default_ttl must be a number of minutes, up to ten years of them, not {minutes!r}"
            )
        found["default_ttl"] = f"{max(1, int(minutes * 60_000))}ms"
    if (refreshes := ttl.get("refresh_on_read")) is not None:
        found["refresh_on_read"] = refreshes
    return {"store": found} if found else {}


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}", file=str(path)) from error


def _table(value: object, what: str, path: Path) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {what} must be an object, not {value!r}", file=str(path))
    return cast("dict[str, object]", value)


def _entrypoint(name: str, graph: object, path: Path) -> str:
    target = cast("dict[str, object]", graph).get("path") if isinstance(graph, dict) else graph
    if not isinstance(target, str):
        raise ConfigError(f'{path}: graphs.{name} must be "./file.py:name" or {{"path": ...}}, not {graph!r}')
    return target


def _environment(env: object, path: Path) -> dict[str, str]:
    if not isinstance(env, str):
        return {name: str(value) for name, value in _table(env, "env", path).items()}
    file = path.parent / env
    if not file.is_file():
        # Templates name a .env that is not checked in; their agents often run without it.
        log.warning("env_file_missing", file=str(file))
        return {}
    return parse_env_file(file.read_text(encoding="utf-8"), str(file))


def _folders(dependencies: object, path: Path) -> list[str]:
    if not isinstance(dependencies, list):
        raise ConfigError(f"{path}: dependencies must be a list, not {dependencies!r}", file=str(path))
    folders = [path.parent]
    for dependency in cast("list[object]", dependencies):
        folder = path.parent / str(dependency)
        if folder.is_dir():
            folders += [folder, folder / "src"]
        else:
            log.info("dependency_not_installed", dependency=dependency, hint="it must be installed already")
    unique = dict.fromkeys(str(folder.resolve()) for folder in folders if folder.is_dir())
    return list(unique)


def parse_env_file(text: str, name: str) -> dict[str, str]:
    """NAME=value lines with comments, `export`, and quotes, as dotenv files have them; values are not expanded.

    Raises:
        ConfigError: a line is none of these; names the file and the line.
    """
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        value = _unquoted(assignment["value"]) if assignment else None
        if assignment is None or value is None:
            raise ConfigError(f"{name}, line {number}: not NAME=value", file=name)
        values[assignment["name"]] = value
    return values


def _unquoted(text: str) -> str | None:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return None if text.strip().startswith(("'", '"')) else _COMMENT.sub("", text).strip()
    if quoted["single"] is not None:
        return quoted["single"]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted["double"])
