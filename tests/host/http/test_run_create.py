"""Every field that LangGraph's clients send is honoured, or refused by its name; none is ignored."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import HttpClient, RunsClient
from pydantic import ValidationError
from tests.flow import test_interrupts
from tests.host.http import test_flow_double_texting, test_flow_runs, test_flow_webhooks
from tests.host.http.conftest import config_in

from agentvisor.core.errors import InvalidInput, ValueTooLarge
from agentvisor.host.http.run_create import RunCreate, check, spec_of
from agentvisor.protocol.metadata import metadata_from_struct
from agentvisor.protocol.v1 import run_pb2


async def payload_of(method: str, **fields: Any) -> dict[str, Any]:
    """What langgraph_sdk sends."""
    sent: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        if request.url.path.endswith("/stream"):
            return httpx.Response(200, headers={"content-type": "text/event-stream"})
        return httpx.Response(200, json={})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://localhost")
    runs = RunsClient(HttpClient(client))
    if method == "stream":
        async for _ in runs.stream("t", "plain", **fields):
            pass
    else:
        await getattr(runs, method)("t", "plain", **fields)
    [payload] = sent
    return payload


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    def made(**fields: Any) -> run_pb2.RunSpec:
        run = RunCreate.model_validate({"assistant_id": "plain", **fields})
        check(run, "t")
        return spec_of(run, "plain", config_in(tmp_path))

    return made


HONOURED: list[tuple[dict[str, Any], Any, Any]] = [
    ({"input": {"a": [1, "é"]}}, lambda spec: json.loads(spec.input), {"a": [1, "é"]}),
    ({"command": {"resume": "yes"}}, lambda spec: json.loads(spec.command), {"resume": "yes"}),
    (
        {"input": {}, "command": {"resume": "yes"}},
        lambda spec: (spec.input, json.loads(spec.command)),
        (b"", {"resume": "yes"}),
    ),
    ({"config": {"tags": ["x"]}}, lambda spec: json.loads(spec.config), {"tags": ["x"]}),
    ({"context": {"user": "ada"}}, lambda spec: json.loads(spec.context), {"user": "ada"}),
    ({"metadata": {"n": 3}}, lambda spec: metadata_from_struct(spec.metadata), {"n": 3}),
    ({"stream_mode": ["values", "messages-tuple"]}, lambda spec: list(spec.stream_modes), ["messages", "values"]),
    ({"stream_subgraphs": True}, lambda spec: spec.stream_subgraphs, True),
    ({"stream_resumable": True}, lambda spec: json.loads(spec.kwargs)["stream_resumable"], True),
    ({"checkpoint_id": "c"}, lambda spec: spec.checkpoint_id, "c"),
    (
        {"checkpoint": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c", "checkpoint_map": None}},
        lambda spec: spec.checkpoint_id,
        "c",
    ),
    ({"config": {"configurable": {"thread_id": "t", "checkpoint_id": "c"}}}, lambda spec: spec.checkpoint_id, "c"),
    ({"command": {"resume": None}}, lambda spec: json.loads(spec.command), {"resume": None}),
    (
        {"command": {"goto": ["a", {"node": "b", "input": 1}]}},
        lambda spec: json.loads(spec.command)["goto"],
        ["a", {"node": "b", "input": 1}],
    ),
    ({"on_interrupt": "abandon"}, lambda spec: spec.abandons, True),
    ({"checkpoint_during": True}, lambda spec: spec.durability, "async"),
    ({"checkpoint_during": False}, lambda spec: spec.durability, "exit"),
    ({"durability": "exit"}, lambda spec: spec.durability, "exit"),
    # Client 0.3's wait sends it and acts on it itself.
    ({"raise_error": False}, lambda spec: spec.agent, "plain"),
    ({"interrupt_before": "*"}, lambda spec: list(spec.interrupt_before), ["*"]),
    ({"interrupt_after": ["tools"]}, lambda spec: list(spec.interrupt_after), ["tools"]),
    ({"multitask_strategy": "enqueue"}, lambda spec: spec.multitask_strategy, run_pb2.MULTITASK_STRATEGY_ENQUEUE),
    ({"multitask_strategy": "reject"}, lambda spec: spec.multitask_strategy, run_pb2.MULTITASK_STRATEGY_REJECT),
    ({"multitask_strategy": "interrupt"}, lambda spec: spec.multitask_strategy, run_pb2.MULTITASK_STRATEGY_INTERRUPT),
    ({"multitask_strategy": "rollback"}, lambda spec: spec.multitask_strategy, run_pb2.MULTITASK_STRATEGY_ROLLBACK),
    ({"after_seconds": 1.5}, lambda spec: spec.after_ms, 1500),
    ({"after_seconds": 0}, lambda spec: spec.after_ms, 0),
    ({"webhook": "https://a.test/"}, lambda spec: spec.webhook, "https://a.test/"),
    ({"webhook": "https://a.test/"}, lambda spec: json.loads(spec.kwargs)["webhook"], "https://a.test/"),
]


@pytest.mark.parametrize(
    "fields, read, expected", HONOURED, ids=lambda value: "" if callable(value) else str(value)[:40]
)
def test_a_field_reaches_the_run(spec: Any, fields: dict[str, Any], read: Any, expected: Any) -> None:
    assert read(spec(**fields)) == expected


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("feedback_keys .* LangSmith", {"feedback_keys": ["a"]}),
    ("langsmith_tracer .* LANGSMITH_PROJECT", {"langsmith_tracer": {"project_name": "p"}}),
    ("stream_mode", {"stream_mode": ["values", "lifecycle"]}),
    ("stream_mode", {"stream_mode": "tools"}),
    ("checkpoint.thread_id", {"checkpoint": {"thread_id": "other", "checkpoint_id": "c"}}),
    ("checkpoint_id", {"checkpoint_id": "c", "checkpoint": {"checkpoint_id": "d"}}),
    ("on_completion", {"on_completion": "keep"}),
    ("command", {"input": {"a": 1}, "command": {"resume": 1}}),
    ("on_interrupt", {"on_interrupt": "abandon", "command": {"resume": 1}}),
    ("durability", {"durability": "sync", "checkpoint_during": True}),
    ("config.configurable.thread_id", {"config": {"configurable": {"thread_id": "other"}}}),
    ("config.configurable.checkpoint_ns", {"config": {"configurable": {"checkpoint_ns": 3}}}),
    ("config.configurable.checkpoint_map", {"config": {"configurable": {"checkpoint_map": "c"}}}),
    ("config.configurable.checkpoint_id", {"config": {"configurable": {"checkpoint_id": 3}}}),
    ("checkpoint_id", {"checkpoint_id": "c", "config": {"configurable": {"checkpoint_id": "d"}}}),
    ("config.configurable", {"config": {"configurable": ["a"]}}),
    ("config.metadata", {"config": {"metadata": "a"}}),
    ("config.recursion_limit", {"config": {"recursion_limit": 0}}),
    ("config.recursion_limit", {"config": {"recursion_limit": -1}}),
    ("config.recursion_limit", {"config": {"recursion_limit": "10"}}),
    ("config.recursion_limit", {"config": {"recursion_limit": True}}),
    ("config.max_concurrency", {"config": {"max_concurrency": 0}}),
    ("config.recursion_limit", {"config": {"recursion_limit": 1.5}}),
    ("config.tags", {"config": {"tags": "x"}}),
    ("config.tags", {"config": {"tags": ["x", 1]}}),
    ("command is empty", {"command": {}}),
    ("command is empty", {"command": {"update": None, "goto": None}}),
    ("command.goto", {"command": {"goto": 3}}),
    ("command.goto", {"command": {"goto": ""}}),
    ("command.goto", {"command": {"goto": {"input": 1}}}),
    ("command.goto", {"command": {"goto": {"node": 1}}}),
    ("command.goto", {"command": {"goto": ["a", None]}}),
    ("metadata", {"metadata": {"big": 2**60}}),
]


@pytest.mark.parametrize("field, fields", REFUSED, ids=lambda value: str(value)[:40])
def test_a_value_that_cannot_be_honoured_is_refused_by_name(spec: Any, field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=field):
        spec(**fields)


ELSEWHERE: dict[str, Callable[..., object]] = {
    "assistant_id": test_flow_runs.test_a_run_has_the_shape_that_clients_know,
    "if_not_exists": test_flow_runs.test_a_run_needs_its_thread_unless_it_may_create_it,
    "on_disconnect": test_flow_runs.test_a_client_that_waits_is_kept_alive_and_leaving_cancels_only_if_asked,
    "on_completion": test_flow_runs.test_a_run_without_a_thread_leaves_none_unless_it_is_to_be_kept,
    "strict_resume": test_interrupts.test_answers_to_what_does_not_wait_are_refused_and_change_nothing,
    "webhook": test_flow_webhooks.test_the_end_of_a_run_is_told_with_the_run_and_its_values,
    "after_seconds": test_flow_double_texting.test_a_delayed_run_keeps_its_thread_busy_and_lets_others_pass,
    "multitask_strategy": test_flow_double_texting.test_rollback_leaves_nothing_of_those_before,
}
"""Fields that the routes or the thread honour: tested there."""


async def test_these_tables_name_every_field_of_langgraphs_client() -> None:
    fields: dict[str, Any] = {
        "input": 1, "command": {"resume": 1}, "metadata": {}, "config": {"tags": []}, "context": {"a": 1},
        "checkpoint": {"checkpoint_id": "c"}, "checkpoint_id": "c", "checkpoint_during": True,
        "interrupt_before": ["a"], "interrupt_after": ["a"], "webhook": "w", "multitask_strategy": "reject",
        "if_not_exists": "create", "after_seconds": 1, "langsmith_tracing": {"project_name": "p"},
        "durability": "sync", "strict_resume": True,
    }  # fmt: skip
    streaming = {"stream_mode": "values", "stream_subgraphs": True, "stream_resumable": True}
    waiting = {"on_disconnect": "cancel", "on_completion": "keep"}
    with pytest.warns(DeprecationWarning, match="checkpoint_during"):
        sent = (
            set(await payload_of("create", **fields, **streaming, on_completion="keep"))
            | set(await payload_of("wait", **fields, **waiting))
            | set(await payload_of("stream", **fields, **streaming, **waiting, feedback_keys=["a"]))
        )
    tables = {name for given, *_ in HONOURED for name in given} | {name for _, given in REFUSED for name in given}
    assert sent <= set(RunCreate.model_fields)
    assert set(RunCreate.model_fields) == tables | set(ELSEWHERE), "a field has no row that shows its effect or refusal"


@pytest.mark.parametrize("value", [-1, -0.5, 1e12, math.nan, math.inf, "soon"])
def test_a_delay_is_a_number_of_seconds_up_to_a_year(value: object) -> None:
    with pytest.raises(ValidationError, match="after_seconds"):
        RunCreate.model_validate({"assistant_id": "plain", "after_seconds": value})


async def test_what_the_client_sends_by_itself_is_accepted(spec: Any) -> None:
    for method in ("create", "wait", "stream"):
        spec(**await payload_of(method, input={"a": 1}))


async def test_a_field_that_nobody_knows_is_refused_by_name(api: httpx.AsyncClient) -> None:
    response = await api.post("/threads/t/runs", json={"assistant_id": "plain", "interupt_before": ["x"]})
    assert response.status_code == 422
    assert response.json()["detail"] == "interupt_before: unknown field"


def test_a_run_without_words_is_durable_and_restarts_as_configured(spec: Any) -> None:
    made = spec()
    assert (made.durability, list(made.stream_modes), made.input) == ("sync", ["values"], b"")
    assert (made.restart.max_attempts, made.restart.initial_backoff_ms, made.timeout_ms) == (3, 2000, 1_800_000)
    assert made.assistant_id == "8b184351-3358-5cdd-b03b-9a70de2251e5"


def test_metadata_that_no_checkpoint_of_the_run_could_have_is_refused(spec: Any) -> None:
    spec(metadata={"note": "x" * 60_000})
    with pytest.raises(
        ValueTooLarge, match=r"metadata has 7\d+ bytes, and the limit is 65536 \(storage.max_metadata\)"
    ):
        spec(metadata={"note": "x" * 70_000})
