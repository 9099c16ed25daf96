"""`agentvisor interrupts` and `agentvisor answer` against a real host."""

import json

import httpx
import pytest
from tests.cli.conftest import Command, Host
from tests.host.http.test_flow_threads import unique

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_what_waits_is_listed_and_answered_by_its_id(agentvisor: Command) -> None:
    named = unique()
    await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)
    (shown,) = json.loads((await agentvisor("interrupts", "--thread", named, "--json")).out)
    assert (shown["thread_id"], shown["agent"], shown["value"]) == (named, "asking", {"question": "sure?"})
    table = (await agentvisor("interrupts", "--agent", "asking", "--limit", "1000")).out
    assert shown["id"] in table
    assert (await agentvisor("interrupts", "--thread", named, "--kind", "other", "--json")).out.strip() == "[]"

    wrong = await agentvisor("answer", named, '"yes"', "--id", "0" * 32)
    assert wrong.code == 4
    assert f"what waits: {shown['id']}" in wrong.err
    answered = await agentvisor("answer", named, '"yes"', "--id", shown["id"], "--wait")
    assert answered.code == 0
    assert json.loads(answered.out)["log"][-1] == "answer yes"
    late = await agentvisor("answer", named, '"yes"')
    assert (late.code, late.out) == (4, "")
    assert "nothing waits" in late.err


async def test_the_only_one_needs_no_id(agentvisor: Command) -> None:
    named = unique()
    await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)
    answered = await agentvisor("answer", named, '"yes"')
    assert answered.out.startswith("run ")


async def test_an_answer_on_a_copy_names_the_agent(agentvisor: Command, host: Host) -> None:
    named = unique()
    await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)
    async with httpx.AsyncClient() as client:
        copied = (await client.post(f"{host.url}/threads/{named}/copy")).json()["thread_id"]
    refused = await agentvisor("answer", copied, '"yes"')
    assert "--agent" in refused.err
    answered = await agentvisor("answer", copied, '"yes"', "--agent", "asking", "--wait")
    assert json.loads(answered.out)["log"][-1] == "answer yes"
