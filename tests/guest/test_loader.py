"""An entrypoint is found as the user's own code would find it, or what is wrong is said in their terms."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentvisor.guest.loader import CouldNotLoad, load


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in sys.modules.keys() - modules:
        del sys.modules[name]


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_file_is_loaded_under_the_name_that_its_neighbours_import_it_by(tmp_path: Path) -> None:
    write(tmp_path, "helpers_x.py", "import agent_x\nTHE_MODULE = agent_x\n")
    file = write(
        tmp_path, "agent_x.py", "class State: pass\ndef agent(input):\n    import helpers_x\n    return helpers_x\n"
    )
    agent = load(f"{file}:agent", [])
    assert agent(None).THE_MODULE.State is sys.modules["agent_x"].State
    assert load(f"{file}:agent", []) is agent


def test_a_file_in_a_package_keeps_its_relative_imports(tmp_path: Path) -> None:
    write(tmp_path, "pkg_y/__init__.py", "")
    write(tmp_path, "pkg_y/sub/__init__.py", "")
    write(tmp_path, "pkg_y/tools.py", "NAME = 'tools'\n")
    file = write(tmp_path, "pkg_y/sub/agent.py", "from ..tools import NAME\n")
    assert load(f"{file}:NAME", []) == "tools"
    assert "pkg_y.sub.agent" in sys.modules


def test_a_file_that_is_called_like_a_module_of_python_does_not_replace_it(tmp_path: Path) -> None:
    import json

    file = write(tmp_path, "json.py", "agent = 'mine'\n")
    assert load(f"{file}:agent", []) == "mine"
    assert sys.modules["json"] is json


def test_a_file_with_a_name_that_is_no_identifier_is_loaded(tmp_path: Path) -> None:
    file = write(tmp_path, "my-agent.v2.py", "agent = 1\n")
    assert load(f"{file}:agent", []) == 1


def test_the_search_path_comes_first(tmp_path: Path) -> None:
    write(tmp_path, "src/mod_z.py", "class Holder:\n    agent = 'right'\n")
    assert load("mod_z:Holder.agent", [str(tmp_path / "src")]) == "right"
    assert sys.path[0] == str(tmp_path / "src")


@pytest.mark.parametrize(
    "name, text, error, message",
    [
        ("a1.py", "graph_x = 1\nimport os\nclass State: pass\n", "AttributeError", "has no 'graph'; did you mean"),
        ("a2.py", "import no_such_thing\n", "ModuleNotFoundError", "No module named 'no_such_thing'"),
        ("a3.py", "def f(:\n", "SyntaxError", "could not be imported"),
        ("a4.py", "import sys\nsys.exit(3)\n", "SystemExit", "called sys.exit(3) while it was imported"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, text: str, error: str, message: str) -> None:
    file = write(tmp_path, name, text)
    with pytest.raises(CouldNotLoad) as refused:
        load(f"{file}:graph", [])
    assert refused.value.error_type == error
    assert message in refused.value.message
    assert str(file) in refused.value.message


def test_a_missing_attribute_lists_what_the_file_defines(tmp_path: Path) -> None:
    file = write(tmp_path, "b1.py", "import os\nclass State: pass\ndef agent(): pass\n")
    with pytest.raises(CouldNotLoad, match=r"\. It has: State, agent"):
        load(f"{file}:zzz", [])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CouldNotLoad, match=r"there is no file .*none\.py"):
        load(f"{tmp_path}/none.py:agent", [])


def test_the_traceback_begins_in_the_users_file(tmp_path: Path) -> None:
    write(tmp_path, "inner_c.py", "def fail():\n    raise KeyError('token')\n")
    file = write(tmp_path, "c1.py", "import inner_c\ninner_c.fail()\n")
    with pytest.raises(CouldNotLoad) as refused:
        load(f"{file}:agent", [])
    frames = [line.strip() for line in refused.value.traceback.splitlines() if line.startswith("  File")]
    assert [frame.split('"')[1] for frame in frames] == [str(file), str(tmp_path / "inner_c.py")]


def test_a_file_that_failed_is_tried_again(tmp_path: Path) -> None:
    file = write(tmp_path, "d-1.py", "raise ValueError\n")
    with pytest.raises(CouldNotLoad):
        load(f"{file}:agent", [])
    file.write_text("agent = 'fixed'\n")
    assert load(f"{file}:agent", []) == "fixed"
