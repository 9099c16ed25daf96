"""Reads a project's langgraph.json as if it were an agentvisor.yaml, so that LangGraph projects start unmodified."""

import json
import re
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import structlog

from agentvisor.host.config_error import ConfigError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.config")

_USED = frozenset({"$schema", "dependencies", "env", "graphs", "store"})
_BETWEEN = re.compile(r"(?:\s+|#[^\r\n]*)*")
_ASSIGNMENT = re.compile(
    r"""
    (?:export[^\S\r\n]+)? (?P<name>[A-Za-z_][\w.-]*) [^\S\r\n]* = [^\S\r\n]*
    (?: '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" | (?P<bare>(?!['"])[^\r\n]*) )
    [^\S\r\n]* (?:\#[^\r\n]*)? (?=[\r\n]|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"(?:^|\s+)#.*")
_NAMED = re.compile(r"\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?\}")
_LONGEST_TTL = 5_000_000
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_langgraph_json(path: Path, environ: Mapping[str, str]) -> dict[str, object]:
    """The agents of a langgraph.json, in the form of our own file; keys we have no use for are logged and ignored.

    `environ`: the host's, from which a file of variables may take some by name.
    """
    project = _table(_json(path), "the file", path)
    if ignored := sorted(project.keys() - _USED):
        log.info("langgraph_keys_ignored", file=str(path), keys=ignored)
    graphs = _table(project.get("graphs", {}), "graphs", path)
    if not graphs:
        raise ConfigError(f'{path}: graphs names no graph: write {{"graphs": {{"agent": "./agent.py:graph"}}}}')
    shared = {
        "framework": "langgraph",
        "env": _environment(project.get("env", {}), path, environ),
        "python_path": _folders(project.get("dependencies", []), path),
    }
    return {
        "agents": {name: {"entrypoint": _entrypoint(name, graph, path), **shared} for name, graph in graphs.items()},
        **_store(project.get("store"), path),
    }


def env_file(path: Path) -> Path | None:
    """The file of variables that a langgraph.json names."""
    named = _table(_json(path), "the file", path).get("env")
    return path.parent / named if isinstance(named, str) else None


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
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}", file=str(path)) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")  # editors of Windows begin a file with a mark
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", file=str(file)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is no text in UTF-8: save it as one ({error})", file=str(file)) from error


def _table(value: object, what: str, path: Path) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {what} must be an object, not {value!r}", file=str(path))
    return cast("dict[str, object]", value)


def _entrypoint(name: str, graph: object, path: Path) -> str:
    target = cast("dict[str, object]", graph).get("path") if isinstance(graph, dict) else graph
    if not isinstance(target, str):
        raise ConfigError(f'{path}: graphs.{name} must be "./file.py:name" or {{"path": ...}}, not {graph!r}')
    return target


def _environment(env: object, path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(env, str):
        return {name: str(value) for name, value in _table(env, "env", path).items()}
    file = path.parent / env
    if not file.is_file():
        # Templates name a .env that is not checked in; their agents often run without it.
        log.warning("env_file_missing", file=str(file))
        return {}
    return parse_env_file(_text(file), str(file), environ)


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


def parse_env_file(text: str, name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """NAME=value lines with comments, `export`, and quotes, between which a value may have several lines.

    As LangGraph's server has them (python-dotenv): ${NAME} and ${NAME:-else} in a value stand for what the file has
    said by then, or the environment; of a name that is nowhere, for nothing.

    Raises:
        ConfigError: a line is none of these; names the file and the line.
    """
    values: dict[str, str] = {}
    known = ChainMap(values, dict(environ))
    at = _after_blanks(text, 0)
    while at < len(text):
        assignment = _ASSIGNMENT.match(text, at)
        if assignment is None:
            line = text.count("\n", 0, at) + 1
            raise ConfigError(f"{name}, line {line}: not NAME=value, or a quote without its other one", file=name)
        values[assignment["name"]] = _NAMED.sub(
            lambda found: known.get(found["name"], found["default"] or ""), _unquoted(assignment)
        )
        at = _after_blanks(text, assignment.end())
    return values


def _after_blanks(text: str, at: int) -> int:
    blanks = _BETWEEN.match(text, at)
    return at if blanks is None else blanks.end()


def _unquoted(assignment: re.Match[str]) -> str:
    if assignment["bare"] is not None:
        return _COMMENT.sub("", assignment["bare"]).strip()
    if assignment["single"] is not None:
        return re.sub(r"\\([\\'])", r"\1", assignment["single"])
    # Of other letters the backslash stays: of C:\\dir, of a regular expression.
    return re.sub(r"""\\([\\'"abfnrtv])""", lambda escape: _ESCAPES.get(escape[1], escape[1]), assignment["double"])
