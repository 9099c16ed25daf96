"""`agentvisor.once` in one living process: results, errors, keys, waiting, and what is asynchronous."""

from typing import Any

import pytest
from tests.flow.conftest import Project, called, client_of

pytestmark = pytest.mark.flow


@pytest.fixture
def call(shared: Project) -> Any:
    client = client_of(shared.hosts[0])
    return lambda what: called(client, f"once_calls:{what}")[1]


def test_what_is_not_json_is_done_all_the_same_and_every_call_says_where(call: Any) -> None:
    told = call("results")
    assert told["tuple"] == [[["returned", "[1, 2]"]] * 2, 1]
    places = {"set": "'set' is", "deep": "['rows'][1]['when'] is not JSON: object", "nan": "nan", "key": "the key 1"}
    for name, place in places.items():
        (first, second), times = told[name]
        assert times == 1
        assert first[0] == second[0] == "InvalidInput"
        assert place in first[1]
        assert place in second[1]


def test_a_result_that_is_too_large_is_done_all_the_same(call: Any) -> None:
    (first, second), times = call("results")["large"]
    assert times == 1
    assert first[0] == "ValueTooLarge"
    assert "storage.max_inline_value" in first[1]
    assert second[0] == "InvalidInput"
    assert "storage.max_inline_value" in second[1]


def test_keys_and_arguments_that_are_none_are_refused(call: Any) -> None:
    *bad, good = call("keys")
    assert [kind for kind, _ in bad] == ["InvalidInput"] * 7
    parts = ["not 0", "not 257", "not int", "not NoneType", "Unicode", "retry", "fn"]
    assert [part for (_, message), part in zip(bad, parts, strict=True) if part not in message] == []
    assert good == ["returned", "1"]


def test_whatever_gives_something_to_be_awaited_is_awaited_each_time(call: Any) -> None:
    assert call("awaitables") == {"partial": ["partial"] * 2, "object": ["called"] * 2, "lambda": ["lambda"] * 2}


def test_a_second_call_waits_for_the_first(call: Any) -> None:
    told = call("at_once")
    assert told["tasks"] == told["gathered"] == ["one"] * 5
    assert told["times"] == 2
    assert told["threads"] == [False] * 4
    assert told["slow"] == 1


def test_a_call_that_would_wait_for_itself_is_refused(call: Any) -> None:
    (blocked, inside) = call("would_wait_for_ever")
    assert blocked[0] == inside[0] == "InvalidInput"
    assert "event loop" in blocked[1]
    assert "inside itself" in inside[1]


def test_an_error_may_be_tried_again_and_an_unknown_outcome_may_not(call: Any) -> None:
    told = call("raises")
    unknown = "UnknownOutcome"
    assert told[:2] == ["no", "yes"]
    assert told[2:5] == [[unknown, "the bank did not answer in time"], unknown, "it did"]
    # It is reconciled at once; and tried again once, where that is the policy.
    assert told[5:] == ["found", unknown]


def test_an_effect_that_was_cancelled_is_of_unknown_outcome(call: Any) -> None:
    assert call("cancelled") == [True, "unknown", True, "unknown", "again"]


def test_idempotency_keys_are_the_same_for_the_same_parts_of_a_thread(shared: Project, call: Any) -> None:
    client = client_of(shared.hosts[0])
    thread, told = called(client, "once_calls:names")
    first, again, *others = told["keys"]
    assert first == again
    assert len(first) == 40
    assert len({first, *others}) == 4
    assert called(client, "once_calls:names", thread)[1]["keys"] == told["keys"]
    assert call("names")["keys"][0] != first
    assert told["forgotten"] == 2
