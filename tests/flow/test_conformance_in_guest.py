"""LangGraph's conformance tests, each inside a guest on a fresh run's own thread.

The suite makes up its thread ids; in a guest the first of a test stands for the run's own thread, and any other is
another thread, which a guest may not touch. So what cannot apply in a guest is exactly what needs a second thread, and
deleting: a run cannot delete the thread that it is writing to (outside, an operator can: test_conformance_outside.py).
"""

import importlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests import langgraph_delta_history
from tests.flow.conftest import Project, called, client_of
from tests.langgraph_conformance import CAPABILITIES

pytestmark = pytest.mark.flow

NEEDS_ANOTHER_THREAD = {
    "test_put_multiple_threads_isolated",
    "test_list_by_thread",
    "test_prune_keep_latest_multiple_threads",
    "test_prune_preserves_other_threads",
    "test_prune_nonexistent_noop",
}
CANNOT_DELETE, CANNOT_COPY = "delete_thread", "copy_thread"
DELTA_HISTORY = "delta_channel_history"
APPLIES = {*CAPABILITIES, DELTA_HISTORY} - {CANNOT_DELETE, CANNOT_COPY}


def names_of(capability: str) -> list[str]:
    if capability == DELTA_HISTORY:
        return [test.__name__ for test in langgraph_delta_history.ALL]
    suite = importlib.import_module(f"langgraph.checkpoint.conformance.spec.test_{capability}")
    names = [test.__name__ for test in getattr(suite, f"ALL_{capability.upper()}_TESTS")]
    assert len(names) == CAPABILITIES[capability]
    return names


def results(project: Project, capability: str) -> dict[str, str]:
    """Why each test failed; empty where it passed."""
    host = project.hosts[0]

    def one(name: str) -> str:
        return called(client_of(host), "conformance:test", capability=capability, name=name)[1]

    names = names_of(capability)
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


@pytest.mark.parametrize("capability", sorted(APPLIES))
def test_langgraphs_tests_pass_on_a_runs_own_thread(capability: str, shared: Project) -> None:
    failures = {name: why for name, why in results(shared, capability).items() if why}
    assert failures.keys() == NEEDS_ANOTHER_THREAD & set(names_of(capability)), failures
    assert all("PermissionRefused" in why for why in failures.values())


def test_a_run_cannot_delete_threads(shared: Project) -> None:
    for name, why in results(shared, CANNOT_DELETE).items():
        assert "PermissionRefused" in why, name


def test_a_run_cannot_copy_threads(shared: Project) -> None:
    for name, why in results(shared, CANNOT_COPY).items():
        # Of nothing, the suite takes any refusal for an answer.
        assert "PermissionRefused" in why or name == "test_copy_thread_nonexistent_source", name
