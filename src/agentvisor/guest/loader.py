"""Finds the agent that an entrypoint names: "/abs/file.py:attribute" or "module:attribute"."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from agentvisor.guest.user_traceback import UserTraceback


class CouldNotLoad(Exception):
    """The user's code has no such agent, or raised while it was imported."""

    def __init__(self, error_type: str, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message
        self.traceback = traceback


def load(entrypoint: str, search_path: Sequence[str]) -> object:
    """Import the module and return what the entrypoint names; `CouldNotLoad` says why not, in the user's terms.

    The folders of `search_path` come first in `sys.path`, then the file's own.
    """
    target, _, attribute = entrypoint.rpartition(":")
    is_file = target.endswith(".py") or "/" in target
    try:
        module = _load_file(Path(target), search_path) if is_file else _load_module(target, search_path)
    except CouldNotLoad:
        raise
    except SystemExit as error:
        raise CouldNotLoad("SystemExit", f"{target} called sys.exit({error.code!r}) while it was imported") from error
    except KeyboardInterrupt:
        # The run was cancelled.
        raise
    except BaseException as error:
        told = UserTraceback.of(error)
        raise CouldNotLoad(told.error_type, f"{target} could not be imported: {told.message}", told.text) from error
    return _attribute(module, attribute, target)


def _load_module(name: str, search_path: Sequence[str]) -> ModuleType:
    _extend_path(search_path)
    return importlib.import_module(name)


def _load_file(file: Path, search_path: Sequence[str]) -> ModuleType:
    if not file.is_file():
        raise CouldNotLoad("FileNotFoundError", f"there is no file {file}")
    name, root = _module_name(file)
    _extend_path([*search_path, str(root)])
    loaded = sys.modules.get(name)
    if loaded is not None and _is_from(loaded, file):
        return loaded
    importable = loaded is None and all(part.isidentifier() for part in name.split("."))
    spec = importlib.util.find_spec(name) if importable else None
    if spec is not None and spec.origin is not None and Path(spec.origin) == file:
        # Under the name that its own code imports it by: types of a stored state are found again by that.
        return importlib.import_module(name)
    return _load_as(f"agentvisor_agent_{name}", file)


def _load_as(name: str, file: Path) -> ModuleType:
    """Load a file whose own name belongs to another module (a user's types.py)."""
    name = "".join(character if character.isalnum() else "_" for character in name)
    if (loaded := sys.modules.get(name)) is not None and _is_from(loaded, file):
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CouldNotLoad("ImportError", f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(file: Path) -> tuple[str, Path]:
    """The dotted name of a file, through the packages that it is in, and the folder that the first of them is in."""
    parts = [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _extend_path(folders: Sequence[str]) -> None:
    wanted = list(dict.fromkeys(folders))
    sys.path[:] = [*wanted, *(folder for folder in sys.path if folder not in wanted)]
    importlib.invalidate_caches()


def _is_from(module: ModuleType, file: Path) -> bool:
    origin = getattr(module, "__file__", None)
    return isinstance(origin, str) and Path(origin) == file


def _attribute(module: ModuleType, path: str, target: str) -> object:
    found: object = module
    for name in path.split("."):
        if not hasattr(found, name):
            public = [known for known in vars(module) if not known.startswith("_")]
            defined = [known for known in public if getattr(vars(module)[known], "__module__", None) == module.__name__]
            near = difflib.get_close_matches(path, public, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            listed = ", ".join(sorted(set(defined or public))[:20]) or "nothing"
            raise CouldNotLoad("AttributeError", f"{target} has no {path!r}{hint}. It has: {listed}")
        found = getattr(found, name)
    return found
