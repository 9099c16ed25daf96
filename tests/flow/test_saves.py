"""The checkpoint API and thread state inside runs: each run is a process of its own, what one keeps the next reads."""

import pytest
from tests.flow.conftest import Project, called, client_of

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]


def test_what_is_saved_is_loaded_by_the_next_process(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, first = called(client, "saves:save", key="plan", state={"step": 1})
    _, second = called(client, "saves:save", thread, key="notes", state=["a"])
    assert first < second
    assert called(client, "saves:load", thread)[1] == ["a"]
    assert called(client, "saves:load", thread, id=first)[1] == {"step": 1}


def test_saves_are_loaded_and_listed_blocking_and_awaited(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:every_way")
    assert seen == {
        "order": True,
        "latest": [{"step": 2}, ["a", None, 1.5, True]],
        "old": {"step": 1},
        "of key": {"step": 2},
        "plan": True,
        "all": ["notes", "plan", "plan"],
        "newest": True,
        "when": True,
    }


def test_thread_state_is_kept_and_changed_blocking_and_awaited(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:state_every_way")
    assert seen == {
        "grows": True,
        "list": [1, 2, 3, {"n": 4}],
        "items": [[2, 3, {"n": 4}], [{"n": 4}], [], []],
        "get": [None, "default"],
        "update": [True, True, {"a": 1, "b": [2]}],
        "keys": [["k", "o"], ["k"], []],
        "delete": [True, False, ["k"]],
        "async": [{"a": 1, "b": 2}, ["x", "y"], ["y"], ["async", "log"], True, "gone"],
    }


def test_a_stale_writer_is_refused_and_changes_nothing(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:stale", key="k")
    assert seen == [["Conflict"] * 4, "theirs"]


def test_a_list_of_many_items_is_read_whole_by_the_next_process(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, many = called(client, "saves:append_many", key="events", count=600)
    assert many == 600
    items = called(client, "saves:read_state", thread, key="events")[1]
    assert [one["number"] for one in items] == [*range(600)]
    thread, many = called(client, "saves:append_many", thread, key="events", count=10)
    assert many == 610
