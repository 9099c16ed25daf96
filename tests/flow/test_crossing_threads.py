"""A guest's call that names another thread is refused: by the SDK with a word of advice, and by the host anyhow."""

from uuid import uuid4

import pytest
from tests.flow.conftest import Project, called, client_of

pytestmark = pytest.mark.flow


@pytest.fixture
def victim(shared_with_both: Project) -> str:
    """A thread of somebody else's, with a checkpoint."""
    thread, _ = called(client_of(shared_with_both.hosts[0]), "crossing:own_thread_by_name")
    return thread


def test_the_saver_refuses_another_threads_id_in_every_call(shared_with_both: Project, victim: str) -> None:
    client = client_of(shared_with_both.hosts[0])
    before = client.threads.get_history(victim, limit=100)
    thread, answers = called(client, "crossing:saver_calls", other=victim)
    for call, answer in answers.items():
        assert answer.startswith("PermissionRefused: "), call
        assert thread in answer, call
        assert victim in answer, call
    assert client.threads.get_history(victim, limit=100) == before


def test_the_host_refuses_what_a_guest_sends_past_the_sdk(shared_with_both: Project, victim: str) -> None:
    client = client_of(shared_with_both.hosts[0])
    before = client.threads.get_history(victim, limit=100)
    thread, answers = called(client, "crossing:raw_calls", other=victim)
    assert answers.pop("list of all threads") == "0 checkpoints"
    assert answers.pop("delete_for_runs") == "done"  # in the run's own thread, where there is nothing of them
    for call, answer in answers.items():
        assert answer.startswith("permission_refused: "), (call, answer)
    assert client.threads.get_history(victim, limit=100) == before
    assert client.threads.get_history(thread) == []


def test_a_thread_that_does_not_exist_is_not_created_by_a_guest(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    other = str(uuid4())
    called(client, "crossing:saver_calls", other=other)
    called(client, "crossing:raw_calls", other=other)
    assert client.threads.search(ids=[other]) == []


def test_the_runs_own_id_may_be_passed(shared_with_both: Project) -> None:
    client = client_of(shared_with_both.hosts[0])
    thread, result = called(client, "crossing:own_thread_by_name")
    assert result == {"word": "hi!"}
    assert client.threads.get_state(thread)["values"] == result


def test_a_list_without_a_config_finds_the_runs_own_thread_alone(shared: Project, victim: str) -> None:
    thread, found = called(client_of(shared.hosts[0]), "crossing:every_checkpoint")
    assert found == [thread]
