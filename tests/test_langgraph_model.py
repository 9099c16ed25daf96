"""Whatever is stored, forked, lost and read again: every checkpoint reads as LangGraph's own saver reads it."""

from contextlib import ExitStack
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_saver import checkpoint

from agentvisor.core.errors import Corrupt, Unavailable
from agentvisor.langgraph import AgentVisorCheckpointer

CHANNELS = ["items", "text", "flag"]
NAMESPACES = ["", "node:1"]


class BothSavers(RuleBasedStateMachine):
    """Does everything to ours and to InMemorySaver."""

    checkpoints = Bundle("checkpoints")

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.double = StoreDouble(blob_page=2000)
        self.transport = self.stack.enter_context(way_to(self.double, "socketpair"))
        self.ours = AgentVisorCheckpointer(transport=self.transport)
        self.model = InMemorySaver()
        self.known: list[Any] = []

    def teardown(self) -> None:
        self.stack.close()

    @rule(target=checkpoints, namespace=st.sampled_from(NAMESPACES), data=st.data())
    def begin(self, namespace: str, data: st.DataObject) -> Any:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
        return self.put(config, {}, {}, data)

    @rule(target=checkpoints, parent=checkpoints, data=st.data(), is_doubted=st.booleans())
    def go_on(self, parent: Any, data: st.DataObject, is_doubted: bool) -> Any:  # noqa: FBT001
        found = self.model.get_tuple(parent)
        assert found is not None
        if is_doubted:
            # The host says that it lost what this builds on: everything is sent once more.
            self.double.refuse_next_puts.append(Corrupt("lost"))
        return self.put(parent, found.checkpoint["channel_values"], found.checkpoint["channel_versions"], data)

    @rule(target=checkpoints, parent=consumes(checkpoints), data=st.data())
    def read_and_go_on(self, parent: Any, data: st.DataObject) -> Any:
        found = self.ours.get_tuple(parent)
        assert found is not None
        return self.put(parent, found.checkpoint["channel_values"], found.checkpoint["channel_versions"], data)

    @rule(parent=checkpoints, data=st.data())
    def fail_to_go_on(self, parent: Any, data: st.DataObject) -> None:
        found = self.model.get_tuple(parent)
        assert found is not None
        values, versions, new = self.next(
            found.checkpoint["channel_values"], found.checkpoint["channel_versions"], data
        )
        self.double.refuse_next_puts.append(Unavailable("lost"))
        try:
            self.ours.put(parent, checkpoint(values, versions), {}, new)
        except Unavailable:
            return
        raise AssertionError

    @rule(
        parent=checkpoints,
        task=st.sampled_from("abc"),
        channel=st.sampled_from([*CHANNELS, "__interrupt__"]),
        value=st.integers(-(2**63), 2**63 - 1),
    )
    def write(self, parent: Any, task: str, channel: str, value: int) -> None:
        for saver in (self.ours, self.model):
            saver.put_writes(parent, [(channel, value), ("text", str(value) * 50)], task, f"path-{task}")

    @rule()
    def start_a_new_process(self) -> None:
        self.ours = AgentVisorCheckpointer(transport=self.transport)

    def next(self, values: dict[str, Any], versions: dict[str, Any], data: st.DataObject) -> Any:
        changed = data.draw(st.lists(st.sampled_from(CHANNELS), unique=True))
        values, versions, new = {**values}, {**versions}, {}
        for channel in changed:
            new[channel] = versions[channel] = self.ours.get_next_version(versions.get(channel), None)
            match channel:
                case "items":
                    more = data.draw(st.lists(st.text(max_size=200), max_size=3))
                    keep = data.draw(st.integers(0, 3))
                    items = values.get("items", [])
                    values["items"] = items[: len(items) - keep if keep < 2 else None] + more
                case "text":
                    values["text"] = data.draw(st.text(max_size=10)) * data.draw(st.integers(0, 100))
                case _:
                    values.pop("flag", None)
                    if data.draw(st.booleans()):
                        values["flag"] = True
        if data.draw(st.integers(0, 9)) == 0:
            dropped = data.draw(st.sampled_from(CHANNELS))
            values.pop(dropped, None)
            versions.pop(dropped, None)
            new.pop(dropped, None)
        return values, versions, new

    def put(self, parent: Any, values: dict[str, Any], versions: dict[str, Any], data: st.DataObject) -> Any:
        values, versions, new = self.next(values, versions, data)
        one = checkpoint(values, versions)
        configs = [saver.put(parent, one, {"step": len(self.known)}, new) for saver in (self.ours, self.model)]
        assert configs[0] == configs[1]
        self.known.append(configs[0])
        return configs[0]

    @invariant()
    def every_checkpoint_reads_the_same(self) -> None:
        for config in self.known[-5:]:
            assert shown(self.ours.get_tuple(config)) == shown(self.model.get_tuple(config))
        for namespace in NAMESPACES:
            config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
            ours, theirs = (list(map(shown, saver.list(config))) for saver in (self.ours, self.model))
            assert ours == theirs
            assert shown(self.ours.get_tuple(config)) == shown(self.model.get_tuple(config))


def shown(found: CheckpointTuple | None) -> Any:
    return None if found is None else found._replace(config=found.config["configurable"])  # type: ignore[arg-type]


TestBothSavers = BothSavers.TestCase
TestBothSavers.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
