"""Which events a subscription lets through, and which subscriptions are none."""

from typing import Any

import pytest

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.events.filters import filter_of
from agentvisor.host.http.events.told import Told


@pytest.mark.parametrize(
    "asked, told, takes",
    [
        ({"channels": ["values"]}, Told("values", {}), True),
        ({"channels": ["values"]}, Told("updates", {}), False),
        ({"channels": ["input"]}, Told("input.requested", {}), True),
        ({"channels": ["custom"]}, Told("custom", {"payload": 1}), True),
        ({"channels": ["custom"]}, Told("custom", {"name": "a", "payload": 1}), True),
        ({"channels": ["custom:a"]}, Told("custom", {"name": "a", "payload": 1}), True),
        ({"channels": ["custom:a"]}, Told("custom", {"name": "b", "payload": 1}), False),
        ({"channels": ["custom:a"]}, Told("custom", {"payload": 1}), False),
        ({"channels": ["values"], "namespaces": []}, Told("values", {}, ("a:1",)), True),
        ({"channels": ["values"], "namespaces": [["a:1"]]}, Told("values", {}, ("a:1", "b:2")), True),
        ({"channels": ["values"], "namespaces": [["a:1"]]}, Told("values", {}, ("a:2",)), False),
        ({"channels": ["values"], "namespaces": [["a"]]}, Told("values", {}, ("a:2",)), True),
        ({"channels": ["values"], "namespaces": [["a"]]}, Told("values", {}), False),
        ({"channels": ["values"], "namespaces": [["x"], ["a"]]}, Told("values", {}, ("a:2",)), True),
        ({"channels": ["values"], "namespaces": [["a"]], "depth": 0}, Told("values", {}, ("a:2",)), True),
        ({"channels": ["values"], "namespaces": [["a"]], "depth": 0}, Told("values", {}, ("a:2", "b:1")), False),
        ({"channels": ["values"], "namespaces": [[]], "depth": 1}, Told("values", {}, ("a:2",)), True),
        ({"channels": ["values"], "namespaces": [[]], "depth": 1}, Told("values", {}, ("a:2", "b:1")), False),
    ],
)
def test_an_event_passes_where_channel_and_namespace_fit(asked: dict[str, Any], told: Told, *, takes: bool) -> None:
    assert filter_of(asked).takes(told) is takes


@pytest.mark.parametrize(
    "asked, field",
    [
        ({}, "channels"),
        ({"channels": []}, "channels"),
        ({"channels": "values"}, "channels"),
        ({"channels": ["debug"]}, "channels"),
        ({"channels": ["custom:"]}, "channels"),
        ({"channels": [1]}, "channels"),
        ({"channels": ["values"], "namespaces": "a"}, "namespaces"),
        ({"channels": ["values"], "namespaces": ["a"]}, "namespaces"),
        ({"channels": ["values"], "namespaces": [[1]]}, "namespaces"),
        ({"channels": ["values"], "depth": -1}, "depth"),
        ({"channels": ["values"], "depth": False}, "depth"),
        ({"channels": ["values"], "since": True}, "since"),
        ({"channels": ["values"], "since": "1"}, "since"),
        ({"channels": ["values"], "cursor": 1}, "cursor"),
    ],
)
def test_what_is_no_subscription_is_refused_by_name(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        filter_of(asked)
    assert refused.value.details["field"] == field
