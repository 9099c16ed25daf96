"""Headers that clients act on, and the pages that they probe first."""

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation

WHERE = ("content-location", "location")


@scenario
async def headers_of_runs(to: Conversation) -> None:
    thread = await to.thread()
    body = {"assistant_id": "steps", "input": {"count": 1}}
    for what in ("", "/wait", "/stream"):
        await to.request(f"thread{what}", "POST", f"/threads/{thread}/runs{what}", headers=WHERE, json=body, body=False)
        await to.request(f"stateless{what}", "POST", f"/runs{what}", headers=WHERE, json=body, body=False)
        await to.settled(lambda: _is_idle(to, thread))
    [run, *_] = await to.client.runs.list(thread)
    to.named(run["run_id"], "run")
    at = f"/threads/{thread}/runs/{run['run_id']}"
    await to.request("join", "GET", f"{at}/join", headers=WHERE, body=False)
    more = (*WHERE, "content-type", "cache-control", "x-accel-buffering")
    await to.request("join the stream", "GET", f"{at}/stream", headers=more, body=False)
    await to.request("get", "GET", at, headers=WHERE, body=False)


async def _is_idle(to: Conversation, thread: str) -> bool:
    return (await to.client.threads.get(thread))["status"] == "idle"


@scenario
async def probes(to: Conversation) -> None:
    await to.request("ok", "GET", "/ok")
    info = await to.request("info", "GET", "/info", body=False)
    to.note("info has a version", isinstance(info.json().get("version"), str))
    await to.request("openapi", "GET", "/openapi.json", body=False)
    await to.request("docs", "GET", "/docs", body=False)


@scenario
async def pages_of_other_origins(to: Conversation) -> None:
    asks = {
        "origin": "https://smith.langchain.com",
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
        "access-control-request-headers": "content-type",
    }
    response = await to.http.options("/threads/search", headers=asks)
    to.note("preflight", [response.status_code, response.headers.get("access-control-allow-private-network")])
    response = await to.http.post("/threads/search", json={}, headers={"origin": "https://smith.langchain.com"})
    exposed = {one.strip().lower() for one in response.headers.get("access-control-expose-headers", "").split(",")}
    needed = ("content-location", "x-pagination-total", "x-pagination-next")
    to.note("exposed", [one for one in needed if one in exposed])
    text = await to.http.post("/threads/search", content=b'{"limit": 1}', headers={"content-type": "text/plain"})
    to.note("JSON as text", text.status_code)
