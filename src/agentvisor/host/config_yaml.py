"""Reads a YAML file in which every key stands once: of two, one would count and the other would be lost silently."""

import re
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import cast

import yaml
from typing_extensions import override

from agentvisor.host.config_error import ConfigError

Lines = Mapping[tuple[str, ...], int]
"""The line of each key, by the keys that lead to it."""


class _BadKey(yaml.YAMLError):
    """A table has a key twice, or one that is no text."""


class _OnceLoader(yaml.SafeLoader):
    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            # << takes in another table, and its keys may well be there again.
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                raise _BadKey(f"the key {key.value} is there twice, in line {lines[key.value]} and in line {line}")
            if key.tag != "tag:yaml.org,2002:str":
                kind = key.tag.rpartition(":")[2]
                raise _BadKey(f"the key {key.value} in line {line} is of the type {kind} in YAML: put it into quotes")
            lines[key.value] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> tuple[object, Lines]:
    """What the file says, and where; ConfigError where it is no YAML, cannot be read, or names a key twice."""
    try:
        loader = _OnceLoader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if node is None:
            return None, {}
        # Before it is constructed: that puts the keys of tables that are taken in (<<) among the table's own.
        lines = dict(_lines(node, ()))
        content = cast("object", loader.construct_document(node))  # pyright: ignore[reportUnknownMemberType] - untyped
        return content, lines
    except _BadKey as error:
        raise ConfigError(f"{file}: {error}", file=str(file)) from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", file=str(file)) from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file} is not YAML: {_told(error)}", file=str(file)) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not YAML: {error}", file=str(file)) from error


def _told(error: yaml.MarkedYAMLError) -> str:
    """What is wrong and where. PyYAML would quote the line, and it is a key without quotes that breaks one."""
    mark = error.problem_mark or error.context_mark
    problem = _NAMED.sub(r"\1 (not shown)", error.problem or error.context or "it cannot be read")
    where = "" if mark is None else f", in line {mark.line + 1}, column {mark.column + 1}"
    return f"{problem}{where}; a value with special characters needs quotes"


_NAMED = re.compile(r"\b(alias|anchor|tag) .*", re.DOTALL)
"""What a text becomes that begins with *, & or an exclamation mark, with its name."""


def _lines(node: yaml.Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    # Deeper than settings are, nothing is looked for: an alias may lead a table into itself.
    if not isinstance(node, yaml.MappingNode) or len(path) > _DEEPEST:
        return
    for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        if isinstance(key, yaml.ScalarNode):
            here = (*path, str(key.value))
            yield here, key.start_mark.line + 1
            yield from _lines(value, here)


_DEEPEST = 4
