"""Reads a YAML file in which every key stands once: of two, one would count and the other would be lost silently."""

from collections.abc import Hashable
from pathlib import Path

import yaml
from typing_extensions import override

from agentvisor.host.config_error import ConfigError


class _KeyTwice(yaml.YAMLError):
    """A table has a key twice."""


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
                raise _KeyTwice(f"the key {key.value} is there twice, in line {lines[key.value]} and in line {line}")
            lines[key.value] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> object:
    """What the file says; ConfigError where it is no YAML, or names a key twice."""
    try:
        return yaml.load(file.read_text(encoding="utf-8"), _OnceLoader)  # noqa: S506 - a SafeLoader
    except _KeyTwice as error:
        raise ConfigError(f"{file}: {error}", file=str(file)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not YAML: {error}", file=str(file)) from error
