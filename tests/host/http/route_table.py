"""Every route of the API, and what becomes of a call by a stranger, the owner and the operator.

A route that is not here fails test_owners_of_routes.py and test_flow_owners.py: give it its row, by what it is about.

- `about(...)`: something that one owner has, named in the path (or in the body). A stranger's call is as for what does
  not exist, and changes nothing.
- `lists(...)`: of many things those that are the caller's.
- `makes(...)`: something new, which is the caller's.
- `hosts(...)`: nothing that anybody owns.
- `follows(...)`: what happens on a thread from now on: of a stranger's, nothing, as where there is none yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import httpx

Things = Mapping[str, str]
"""What an owner has, by the names that stand in paths: thread_id, run_id, ...; and `mark`, which is in its metadata."""
Body = Callable[[Things], Any]
Stage = Literal["idle", "paused", "busy", "alone", "alone and busy", "cron"]
"""Of a thread: nothing has run; a finished run asked something, thread state has the key `k`; a run is at work.

`alone`: it was made for a run that came without one, and has ended; is at work. `cron`: it has a cron."""


@dataclass(frozen=True)
class Row:
    """How a route is called, and what is expected."""

    kind: Literal["about", "lists", "makes", "hosts", "follows"]
    body: Body | None = None
    query: str = ""
    named: Things = field(default_factory=dict)
    """What the path names in the place of the thing's own."""
    stage: Stage = "paused"
    spends: bool = False
    """After the call the thing is another, so that each caller gets one of their own."""
    endless: bool = False
    """It answers for as long as the caller stays."""
    status: int = 200
    """For the owner and the operator."""
    stranger: int = 404
    """For another owner; of `hosts`, for any owner."""
    nobody: int = 401
    """For who shows no key."""
    tells: Callable[[httpx.Response, Things], bool] = lambda response, things: things["thread_id"] in response.text
    """Of `lists`: whether the answer tells of the thing, or has changed it."""
    thread_of: Callable[[httpx.Response], str] = lambda response: response.headers["content-location"].split("/")[2]
    """Of `makes`: where the new thread's id is."""


def about(body: Body | None = None, **more: Any) -> Row:
    return Row("about", body, **more)


def lists(body: Body | None = None, **more: Any) -> Row:
    return Row("lists", body, **more)


def makes(body: Body | None = None, **more: Any) -> Row:
    return Row("makes", body, **more)


def hosts(body: Body | None = None, **more: Any) -> Row:
    return replace(Row("hosts", body, stranger=200), **more)


def follows(body: Body | None = None, **more: Any) -> Row:
    return Row("follows", body, **more)


def run(agent: str = "plain", **fields: object) -> Body:
    return lambda _: {"assistant_id": agent, "input": {}, **fields}


def marked(things: Things) -> Any:
    return {"metadata": {"mark": things["mark"]}}


TABLE: dict[str, Row] = {
    # the host
    "GET /ok": hosts(nobody=200),
    "GET /livez": hosts(nobody=200),
    "GET /readyz": hosts(nobody=200),
    "GET /info": hosts(),
    "GET /metrics": hosts(stranger=403),
    # Only encryption.codec_key opens them, and it is not set there.
    "GET /codec": hosts(status=404, stranger=404, nobody=404),
    "POST /codec/decode": hosts(lambda _: {"payloads": []}, status=404, stranger=404, nobody=404),
    "GET /openapi.json": hosts(),
    "GET /docs": hosts(),
    "GET /docs/oauth2-redirect": hosts(),
    "GET /redoc": hosts(),
    "POST /assistants/search": hosts(lambda _: {}),
    "GET /assistants/{assistant_id}": hosts(),
    # What follows is everybody's own, also where it has the same name: test_flow_owners_kept.py.
    "POST /assistants": hosts(lambda _: {"graph_id": "plain"}),
    "POST /assistants/count": hosts(lambda _: {}),
    "PATCH /assistants/{assistant_id}": hosts(lambda _: {"metadata": {"a": 1}}, named={"assistant_id": "asking"}),
    "DELETE /assistants/{assistant_id}": hosts(named={"assistant_id": "waiting"}, status=409, stranger=409),
    "POST /assistants/{assistant_id}/versions": hosts(lambda _: {}),
    "POST /assistants/{assistant_id}/latest": hosts(lambda _: {"version": 1}),
    "PUT /store/items": hosts(lambda _: {"namespace": ["n"], "key": "k", "value": {}}, status=204, stranger=204),
    "GET /store/items": hosts(query="namespace=n&key=k"),
    "DELETE /store/items": hosts(lambda _: {"namespace": ["n"], "key": "k"}, status=204, stranger=204),
    "POST /store/items/search": hosts(lambda _: {"namespace_prefix": ["n"]}),
    "POST /store/namespaces": hosts(lambda _: {}),
    "GET /assistants/{assistant_id}/graph": hosts(),
    "GET /assistants/{assistant_id}/schemas": hosts(),
    "GET /assistants/{assistant_id}/subgraphs": hosts(),
    "GET /assistants/{assistant_id}/subgraphs/{namespace}": hosts(named={"namespace": "child"}),
    # threads
    "POST /threads": makes(lambda _: {}, thread_of=lambda response: response.json()["thread_id"]),
    "GET /threads/{thread_id}": about(),
    "PATCH /threads/{thread_id}": about(lambda _: {"metadata": {"a": 1}}),
    "DELETE /threads/{thread_id}": about(spends=True, status=204),
    "POST /threads/search": lists(marked),
    "POST /threads/count": lists(marked, tells=lambda response, _: response.json() > 0),
    "POST /threads/{thread_id}/copy": about(),
    "GET /threads/{thread_id}/export": about(),
    # What is no file is refused, whoever sends it: whose an imported thread is, test_flow_export.py shows.
    "POST /threads/import": hosts(status=422, stranger=422),
    "POST /threads/prune": lists(
        lambda things: {"thread_ids": [things["thread_id"]]},
        spends=True,
        tells=lambda response, _: response.json()["pruned_count"] > 0,
    ),
    "GET /threads/{thread_id}/storage": about(),
    # their states
    "GET /threads/{thread_id}/state": about(),
    "GET /threads/{thread_id}/state/{checkpoint_id}": about(),
    "POST /threads/{thread_id}/state": about(lambda _: {"values": {"count": 1}, "as_node": "work"}, spends=True),
    "POST /threads/{thread_id}/state/checkpoint": about(
        lambda things: {"checkpoint": {"checkpoint_id": things["checkpoint_id"], "checkpoint_ns": ""}}
    ),
    "GET /threads/{thread_id}/history": about(),
    "POST /threads/{thread_id}/history": about(lambda _: {}),
    "GET /threads/{thread_id}/thread-state": about(),
    "GET /threads/{thread_id}/thread-state/{key}": about(),
    "PUT /threads/{thread_id}/thread-state/{key}": about(lambda _: {"value": {"x": 2}}),
    "PATCH /threads/{thread_id}/thread-state/{key}": about(lambda _: {"changes": {"x": 3}}),
    "DELETE /threads/{thread_id}/thread-state/{key}": about(spends=True, status=204),
    "POST /threads/{thread_id}/thread-state/{key}/append": about(lambda _: {"item": 1}, named={"key": "a list"}),
    # runs
    "GET /threads/{thread_id}/stream": about(endless=True),
    "POST /threads/{thread_id}/runs": about(run(), stage="idle", spends=True),
    "POST /threads/{thread_id}/runs/wait": about(run(), stage="idle", spends=True),
    "POST /threads/{thread_id}/runs/stream": about(run(), stage="idle", spends=True),
    "GET /threads/{thread_id}/runs": about(),
    "GET /threads/{thread_id}/runs/{run_id}": about(),
    "DELETE /threads/{thread_id}/runs/{run_id}": about(spends=True, status=204),
    "POST /runs/cancel": about(
        lambda things: {"thread_id": things["thread_id"], "run_ids": [things["run_id"]]},
        stage="busy",
        spends=True,
        status=204,
    ),
    # That there is no such run is told in the answer, as on the LangGraph server.
    "GET /threads/{thread_id}/runs/{run_id}/join": about(stranger=200),
    "GET /threads/{thread_id}/runs/{run_id}/stream": about(stranger=200),
    "POST /threads/{thread_id}/runs/{run_id}/cancel": about(stage="busy", spends=True, status=202),
    "POST /runs": makes(run(on_completion="keep"), thread_of=lambda response: response.json()["thread_id"]),
    "POST /runs/batch": makes(
        lambda _: [{"assistant_id": "plain", "input": {}, "on_completion": "keep"}],
        thread_of=lambda response: response.json()[0]["thread_id"],
    ),
    "POST /runs/wait": makes(run(on_completion="keep")),
    "POST /runs/stream": makes(run(on_completion="keep")),
    # Agent Protocol's names: those runs have come without a thread, and have its id
    "POST /agents/search": hosts(lambda _: {}),
    "GET /agents/{agent_id}": hosts(named={"agent_id": "plain"}),
    "GET /agents/{agent_id}/schemas": hosts(named={"agent_id": "asking"}),
    "POST /runs/search": lists(lambda _: {"limit": 1000}),
    "GET /runs/{run_id}": about(stage="alone"),
    "DELETE /runs/{run_id}": about(stage="alone", spends=True, status=204),
    "GET /runs/{run_id}/wait": about(stage="alone"),
    "GET /runs/{run_id}/stream": about(stage="alone"),
    "POST /runs/{run_id}/cancel": about(stage="alone and busy", spends=True, status=202),
    # crons
    "POST /threads/{thread_id}/runs/crons": about(run(schedule="0 0 1 1 *")),
    "POST /runs/crons": hosts(run(schedule="0 0 1 1 *")),
    "POST /runs/crons/search": lists(lambda _: {"limit": 1000}, stage="cron", spends=True),
    "POST /runs/crons/count": lists(
        lambda things: {"thread_id": things["thread_id"]},
        stage="cron",
        spends=True,
        tells=lambda response, _: response.json() > 0,
    ),
    "GET /runs/crons/{cron_id}": about(stage="cron"),
    "PATCH /runs/crons/{cron_id}": about(lambda _: {"metadata": {"a": 1}}, stage="cron"),
    "DELETE /runs/crons/{cron_id}": about(stage="cron", spends=True, status=204),
    # the event protocol: a command that is refused is answered, too
    "POST /threads/{thread_id}/commands": about(lambda _: {"id": 1, "method": "agent.getTree"}, stranger=200),
    "POST /threads/{thread_id}/stream/events": follows(lambda _: {"channels": ["lifecycle", "values", "input"]}),
    "POST /threads/{thread_id}/stream": follows(lambda _: {"channels": ["lifecycle", "values", "input"]}),
    "WS /threads/{thread_id}/stream/events": follows(),
    # what waits for an answer
    "GET /interrupts": lists(query="limit=1000"),
    "GET /threads/{thread_id}/interrupts": about(),
    "POST /threads/{thread_id}/interrupts": about(
        lambda things: {"answers": {things["interrupt_id"]: "yes"}}, spends=True
    ),
    "POST /threads/{thread_id}/interrupts/{interrupt_id}": about(lambda _: {"answer": "yes"}, spends=True),
    "DELETE /threads/{thread_id}/interrupts": about(spends=True),
}
"""By method and path as the app has it; `WS` is a WebSocket's method."""
