"""Who may import what, where import-linter's contracts cannot say it: by file, by framework, and inside functions."""

import ast
import fnmatch
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = SRC / "agentvisor"
FILES = sorted(path for path in PACKAGE.rglob("*.py"))
OWN = sorted(path for path in FILES if not path.is_relative_to(PACKAGE / "protocol" / "v1"))

# Temporal's engine rooms: each a file (or a few with its name in front) or a folder under host/.
TEMPORAL_ROOMS = [
    "threads",
    "shelves",
    "erasing",
    "temporal_calls",
    "workflow",
    "run_activity",
    "journal",
    "worker",
    "temporal_server",
    "temporal_client",
    "temporal_core",
    "checks",
    "capacity",
    "codec",
    "peers",
    "beating",
    "cron_activity",
    "cron_schedules",
    "crons",
    "deployment",
    "readiness",
    "expire_activity",
    "webhook_activity",
    "app",
]
TEMPORAL = [f"host/{room}{rest}" for room in TEMPORAL_ROOMS for rest in (".py", "_*.py", "/*.py")]
LANGGRAPH = [
    "langgraph.py",
    "_langgraph/*.py",
    "guest/runners/langgraph.py",
    "guest/runners/langgraph_*.py",
    "cli/demo_project/*.py",  # a user's agent
    "cli/torture_project/*.py",  # another
    "testing/langgraph.py",  # a model for agents under test
]
STRANDS = [
    "strands.py",
    "_strands/*.py",
    "guest/runners/strands.py",
    "guest/runners/strands_*.py",
    "testing/strands.py",  # a model for agents under test
]
ADK = [
    "adk.py",
    "_adk/*.py",
    "guest/runners/adk.py",
    "guest/runners/adk_*.py",
    "testing/adk.py",  # a model for agents under test
]
CREWAI = [
    "crewai.py",
    "_crewai/*.py",
    "guest/runners/crewai.py",
    "guest/runners/crewai_*.py",
    "testing/crewai.py",  # a model for agents under test
]
PYDANTIC_AI = ["guest/runners/pydantic_ai.py", "guest/runners/pydantic_ai_*.py"]
OPENAI_AGENTS = [
    "guest/runners/openai_agents.py",
    "guest/runners/openai_agents_*.py",
    "testing/openai_agents.py",  # a model for agents under test
]
# What runs in, or is forked into, an agent process.
AGENT_SIDE = [
    "guest/zygote.py",
    "guest/agent.py",
    "guest/loader.py",
    "guest/runners/*.py",
    "langgraph.py",
    "strands.py",
    "adk.py",
    "crewai.py",
    "checkpoint.py",
]
OPENTELEMETRY = ["host/tracing/otel.py", "guest/tracing.py"]
WORKFLOW = ["host/workflow.py", "host/workflow_*.py", "host/workflow/*.py"]


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def matches(path: Path, patterns: list[str]) -> bool:
    # fnmatch lets * cross folders, which suits a room's subfolders.
    return any(fnmatch.fnmatch(name_of(path), pattern) for pattern in patterns)


@cache
def imports(path: Path, *, at_load: bool = False) -> frozenset[str]:
    """Dotted names that a file imports: anywhere in it, or only those that importing it imports."""
    return frozenset(_imported(ast.parse(path.read_bytes()), at_load=at_load))


def _imported(node: ast.AST, *, at_load: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                assert level == 0, "relative imports are banned"
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Call(ast.Name("__import__") | ast.Attribute(attr="import_module"), [ast.Constant(str(name)), *_]):
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if at_load:
                continue
        yield from _imported(child, at_load=at_load)


def imports_any(path: Path, *packages: str) -> list[str]:
    return sorted(name for name in imports(path) if any(f"{name}.".startswith(f"{package}.") for package in packages))


def file_of(dotted: str) -> Path | None:
    """The file of a module of ours, or of the module that holds a name of ours."""
    while dotted:
        path = SRC / dotted.replace(".", "/")
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
        dotted = dotted.rpartition(".")[0]
    return None


def loaded_with(path: Path) -> dict[str, Path]:
    """Every name that is imported when a file is, through all our modules -> the file that imports it."""
    found: dict[str, Path] = {}
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        # Importing a module runs the __init__ of its packages.
        waiting += [parent / "__init__.py" for parent in file.parents if (parent / "__init__.py").is_file()]
        for name in imports(file, at_load=True):
            found.setdefault(name, file)
            if name.startswith("agentvisor") and (ours := file_of(name)):
                waiting.append(ours)
    return found


def test_every_room_is_named_in_the_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("exhaustive"))
    named = {name.strip().strip("()") for layer in layers for name in layer.replace("|", ":").split(":")}
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert rooms - {"__init__"} <= named


def test_the_walk_sees_imports_in_functions_and_by_name() -> None:
    tree = ast.parse("import a.b\ndef f():\n from c import d\n importlib.import_module('e')\n")
    assert set(_imported(tree, at_load=False)) == {"a.b", "c.d", "e"}
    assert set(_imported(tree, at_load=True)) == {"a.b"}


def test_the_walk_goes_through_our_modules() -> None:
    assert "grpc" in loaded_with(PACKAGE / "protocol" / "v1" / "guest_pb2_grpc.py")
    assert "pydantic.BaseModel" in loaded_with(PACKAGE / "host" / "config.py")  # through config_tree


def test_nothing_imports_a_pickle() -> None:
    unsafe = ("pickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal")
    assert {name_of(path): names for path in FILES if (names := imports_any(path, *unsafe))} == {}


@pytest.mark.parametrize(
    "rooms, packages",
    [
        pytest.param(TEMPORAL, ("temporalio",), id="Temporal, to its engine rooms"),
        pytest.param(LANGGRAPH, ("langgraph", "langchain", "langchain_core", "langsmith"), id="LangGraph"),
        pytest.param(STRANDS, ("strands",), id="Strands"),
        pytest.param(ADK, ("google.adk", "google.genai"), id="ADK"),
        pytest.param(CREWAI, ("crewai", "crewai_core"), id="CrewAI"),
        pytest.param(PYDANTIC_AI, ("pydantic_ai", "pydantic_graph"), id="Pydantic AI"),
        pytest.param(OPENAI_AGENTS, ("agents", "openai"), id="OpenAI Agents SDK"),
        pytest.param(OPENTELEMETRY, ("opentelemetry",), id="OpenTelemetry, to who makes spans and who joins a trace"),
    ],
)
def test_a_framework_is_known_to_its_runner_and_its_public_module_only(
    rooms: list[str], packages: tuple[str, ...]
) -> None:
    knowing = {name_of(path): names for path in OWN if (names := imports_any(path, *packages))}
    assert {name: names for name, names in knowing.items() if not matches(PACKAGE / name, rooms)} == {}
    assert knowing, "a rule that holds for nothing"


@pytest.mark.parametrize("path", [path for path in OWN if name_of(path).startswith("core/")], ids=name_of)
def test_core_imports_the_standard_library_only(path: Path) -> None:
    foreign = {name for name in imports(path) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert all(name.startswith("agentvisor.core.") for name in foreign)


@pytest.mark.parametrize("path", [path for path in OWN if name_of(path).startswith("core/")], ids=name_of)
def test_core_is_told_time_ids_and_chance(path: Path) -> None:
    assert not imports_any(path, "time", "random", "secrets", "uuid", "os", "asyncio", "threading")


@pytest.mark.parametrize("path", [path for path in OWN if matches(path, WORKFLOW)], ids=name_of)
def test_the_workflow_knows_core_protocol_and_temporal_only(path: Path) -> None:
    own_room = ("agentvisor.host.workflow",)
    allowed = (*own_room, "agentvisor.core", "agentvisor.protocol", "temporalio", "google.protobuf")
    foreign = {name for name in imports(path) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert not {name for name in foreign if not name.startswith(allowed)}


@pytest.mark.parametrize("path", [path for path in OWN if matches(path, AGENT_SIDE)], ids=name_of)
def test_what_runs_in_an_agent_process_loads_no_grpc(path: Path) -> None:
    # gRPC in a forked process hangs or worse. (protobuf is not gRPC.)
    loaded = loaded_with(path)
    assert {name: name_of(by) for name, by in loaded.items() if name.partition(".")[0] == "grpc"} == {}


@pytest.mark.parametrize("path", [path for path in OWN if name_of(path).startswith("guest/")], ids=name_of)
def test_a_guest_loads_nothing_of_the_host_and_no_configuration(path: Path) -> None:
    heavy = ("agentvisor.host", "temporalio", "fastapi", "pydantic", "structlog", "yaml")
    if matches(path, [*LANGGRAPH, *ADK, *CREWAI, *PYDANTIC_AI, *OPENAI_AGENTS]):
        heavy = ("agentvisor.host", "temporalio", "fastapi")
    assert {name for name in loaded_with(path) if name.startswith(heavy)} == set()


@pytest.mark.parametrize("name", ["host/app.py", "host/http/app.py", "guest/agent.py", "guest/zygote.py"])
def test_opentelemetry_is_not_imported_before_somebody_traces(name: str) -> None:
    assert not [one for one in loaded_with(PACKAGE / name) if one.startswith("opentelemetry")]
