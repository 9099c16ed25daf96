"""Where a value of the configuration was set: in a file's line, by a variable, by an option, or nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Origin:
    """One place; as text, what errors and `agentvisor config` call it."""

    kind: Literal["default", "file", "variable", "option"]
    name: str = ""
    """The file's path, the variable, or the option as it is typed."""
    line: int | None = None
    """Of the file, counted from 1, where it is known."""

    @override
    def __str__(self) -> str:
        match self.kind:
            case "default":
                return "default"
            case "file":
                return self.name if self.line is None else f"{self.name}, line {self.line}"
            case "variable":
                return f"environment variable {self.name}"
            case "option":
                return f"option {self.name}"


DEFAULT = Origin("default")
