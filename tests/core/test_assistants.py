"""What a run has of its assistant, and what a patch makes of one."""

from agentvisor.core.assistants import (
    Assistant,
    Patch,
    brought_back,
    contains,
    decoded,
    merged_config,
    mirrored,
    next_version,
)

ONE = Assistant("id", "agent", "N", "D", {"configurable": {"a": 1}, "tags": ["t"]}, {"a": 1}, {"m": 1}, 3, 5, 7, 8, 9)


def test_an_assistant_is_stored_as_it_is() -> None:
    odd = Assistant("id", "agent", "é\ud800", None, {"configurable": {"x": [None, 1.5]}})
    assert decoded(ONE.encoded()) == ONE
    assert decoded(odd.encoded()) == odd


def test_numbers_of_versions_are_not_used_again() -> None:
    back = brought_back(ONE, Assistant("id", "other", "N1", version=1), 20)
    assert (back.version, back.newest, back.graph_id, back.created_at_ms, back.updated_at_ms) == (1, 5, "other", 7, 20)
    after = next_version(back, Patch(name="N6"), 30)
    assert (after.version, after.newest, after.name) == (6, 6, "N6")


def test_a_patch_replaces_config_and_context_together_and_merges_metadata() -> None:
    by_context = next_version(ONE, Patch(context={"b": 2}, metadata={"k": 2}), 1)
    assert by_context.config == {"configurable": {"b": 2}, "tags": ["t"]}
    assert (by_context.context, by_context.metadata) == ({"b": 2}, {"m": 1, "k": 2})
    by_config = next_version(ONE, Patch(config={"configurable": {"c": 3}}), 1)
    assert (by_config.config, by_config.context) == ({"configurable": {"c": 3}}, {"c": 3})
    neither = next_version(ONE, Patch(config={}, context={}), 1)
    assert (neither.config, neither.context) == (ONE.config, ONE.context)


def test_config_and_context_say_the_same() -> None:
    assert mirrored({"tags": ["t"]}, {"a": 1}) == ({"tags": ["t"], "configurable": {"a": 1}}, {"a": 1})
    assert mirrored({"configurable": {"a": 1}}, {}) == ({"configurable": {"a": 1}}, {"a": 1})
    assert mirrored({}, {}) == ({}, {})


def test_a_run_has_its_own_above_its_assistants() -> None:
    assert merged_config(ONE, None, None) == ({"configurable": {"a": 1}, "tags": ["t"]}, {"a": 1})
    config, context = merged_config(ONE, {"configurable": {"b": 2, "checkpoint_id": "c"}, "tags": ["u"]}, None)
    assert config == {"configurable": {"a": 1, "b": 2, "checkpoint_id": "c"}, "tags": ["u"]}
    assert context == {"a": 1, "b": 2}
    config, context = merged_config(ONE, {"configurable": {"a": 2}}, {"a": 3, "d": 4})
    assert config == {"configurable": {"a": 2, "d": 4}, "tags": ["t"]}
    assert context == {"a": 3, "d": 4}
    assert merged_config(ONE, None, "a text")[1] == "a text"


def test_an_assistant_that_says_nothing_changes_nothing() -> None:
    assert merged_config(Assistant("id", "agent", "agent"), {"configurable": {"a": 1}}, None) == (
        {"configurable": {"a": 1}},
        None,
    )
    assert merged_config(Assistant("id", "agent", "agent"), None, None) == (None, None)


def test_metadata_holds_what_is_asked_for_at_every_depth() -> None:
    whole = {"a": {"b": 1, "c": [1, 2]}, "t": True}
    assert contains(whole, {"a": {"b": 1}})
    assert contains(whole, {})
    assert not contains(whole, {"a": {"b": 2}})
    assert not contains(whole, {"nope": None})
    assert not contains(whole, {"t": 1})
    assert contains(whole, {"a": {"c": [1, 2]}})
