"""An unmodified graph's store is the store of `/store/items`: what it keeps outlives its process and its host."""

from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.client import SyncLangGraphClient
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, kill

from agentvisor.langgraph import AgentVisorStore

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

TEA = {"text": "likes tea"}


@pytest.fixture
def thread(warm_victims: Project) -> VictimThread:
    return VictimThread(warm_victims, warm_victims.hosts[0])


def items(client: SyncLangGraphClient, space: str) -> list[list[Any]]:
    found = client.store.search_items([space])["items"]
    return [[one["namespace"][1:], one["key"], one["value"]] for one in found]


def test_what_a_node_has_put_is_there_after_its_process_was_killed(thread: VictimThread) -> None:
    space = uuid4().hex
    run = thread.graph("shelving:remembers", {"space": space})
    pid = thread.until_it("remembered")
    assert items(thread.client, space) == [[["memories"], "first", TEA]]
    kill(pid)
    assert items(thread.client, space) == [[["memories"], "first", TEA]]
    thread.until_it("remembered", 2)
    thread.tell("gate")
    assert thread.ended(run)["status"] == "success"
    subgraphs = [["inner"], "k", {"text": "from the subgraph"}]
    assert items(thread.client, space) == [subgraphs, [["memories"], "first", TEA]]
    assert thread.values()["listed"] == [[space, "inner"], [space, "memories"]]


def test_a_node_reads_what_a_client_has_put(thread: VictimThread) -> None:
    space = uuid4().hex
    thread.client.store.put_item([space, "from", "outside"], "k", TEA)
    thread.client.store.put_item([space], "other", {"text": "nothing"})
    assert thread.ended(thread.graph("shelving:recalls", {"space": space}))["status"] == "success"
    values = thread.values()
    assert values["found"] == [[[space, "from", "outside"], "k", TEA]]
    assert values["listed"] == [[space], [space, "from", "outside"]]
    assert values["missing"] is None


def test_a_notebook_has_the_same_items(thread: VictimThread) -> None:
    space = uuid4().hex
    store = AgentVisorStore(endpoint=thread.host.url)
    store.put((space, "a"), "k", {"v": 1}, ttl=5)
    store.put((space, "b"), "k", {"v": 2})
    assert items(thread.client, space) == [[["a"], "k", {"v": 1}], [["b"], "k", {"v": 2}]]
    thread.client.store.put_item([space, "a"], "k", {"v": 3})
    found = store.get((space, "a"), "k")
    assert found is not None
    assert (found.namespace, found.key, found.value) == ((space, "a"), "k", {"v": 3})
    assert [one.value for one in store.search((space,), filter={"v": {"$gte": 3}})] == [{"v": 3}]
    assert store.list_namespaces(suffix=("*", "b"), prefix=(space,)) == [(space, "b")]
    store.delete((space, "a"), "k")
    assert store.get((space, "a"), "k") is None


@pytest.mark.parametrize(
    "graph, error, says",
    [("overflows", "ValueTooLarge", "storage.max_inline_value"), ("confuses", "InvalidInput", "['inside']['a set']")],
)
def test_what_cannot_be_kept_is_the_nodes_error_by_name(
    thread: VictimThread, graph: str, error: str, says: str
) -> None:
    space = uuid4().hex
    ended = thread.ended(thread.graph(f"shelving:{graph}", {"space": space}))
    assert ended["error"]["error"] == error
    assert says in ended["error"]["message"]
    assert items(thread.client, space) == []


def test_items_outlive_the_host_that_took_them(zygote_project: Project) -> None:
    zygote_project.more = {"remembers": "shelving.py:remembers", "recalls": "shelving.py:recalls"}
    zygote_project.names = {}
    host, other = zygote_project.host(), zygote_project.host()
    first, second = VictimThread(zygote_project, host), VictimThread(zygote_project, other)
    space = uuid4().hex
    zygote_project.gate.touch()
    first.client.runs.wait(first.id, "remembers", input={"space": space})
    for number in range(10):
        first.client.store.put_item([space, "client"], f"k{number}", {"text": f"n{number}"})
    host.kill()
    second.client.runs.wait(second.id, "recalls", input={"space": space})
    found = {(*one[0][1:], one[1]): one[2]["text"] for one in second.values()["found"]}
    kept = {("memories", "first"): "likes tea", ("inner", "k"): "from the subgraph"}
    assert found.items() <= {**kept, **{("client", f"k{number}"): f"n{number}" for number in range(10)}}.items()
    assert len(found) == 10  # a search's default
    assert len(items(second.client, space)) == 10
    assert len(second.client.store.search_items([space], limit=100)["items"]) == 12
