"""`agentvisor run` and `agentvisor threads` against a real host."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.host.http.test_flow_threads import unique

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_a_run_is_followed_to_its_values(agentvisor: Command) -> None:
    named = unique()
    ended = await agentvisor("run", "waiting", "--input", '{"count": 1}', "--thread", named)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == f"thread {named}"
    assert 'work {"count": 2, "log": ["worked"]}' in lines
    assert 'custom {"working": 1}' in lines
    assert json.loads(ended.out[ended.out.index("\n{\n") :]) == {"count": 2, "log": ["worked", "waited"]}


async def test_a_question_is_shown_with_how_to_answer_it_and_answered(agentvisor: Command) -> None:
    named = unique()
    asked = await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)
    assert asked.code == 0
    assert 'waits for an answer {"question": "sure?"}' in asked.out
    assert f"answer with: agentvisor run asking --thread {named} --resume JSON" in asked.out
    listed = await agentvisor("threads", "list", "--status", "interrupted")
    assert named in listed.out
    answered = await agentvisor("run", "asking", "--thread", named, "--resume", '"yes"')
    assert '"answer yes"' in answered.out
    assert "waits for an answer" not in answered.out


async def test_a_models_text_is_joined(agentvisor: Command) -> None:
    given = '{"messages": [{"role": "user", "content": "hi"}]}'
    ended = await agentvisor("run", "talking", "--input", "-", stdin=given)
    assert "hello big world" in ended.out.splitlines()


async def test_a_failed_run_exits_with_1_and_says_why(agentvisor: Command, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"count": 1}')
    ended = await agentvisor("run", "failing", "--input", f"@{tmp_path}/input.json")
    assert ended.code == 1
    assert ended.err == "ValueError: boom!\n"


async def test_only_the_values_are_printed_for_programs(agentvisor: Command) -> None:
    ended = await agentvisor("run", "plain", "--input", "[1]", "--json")
    assert json.loads(ended.out) == {"echo": [1]}


async def test_a_plain_agent_that_returns_nothing_has_empty_values(agentvisor: Command) -> None:
    ended = await agentvisor("run", "nothing", "--json")
    assert (ended.code, json.loads(ended.out)) == (0, {})


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (("run", "nope"), 2, "there is no agent 'nope': this host has asking"),
        (("run", "plain", "--thread", "a b"), 2, "use 1 to 255 characters"),
        (("threads", "show", "nope"), 3, "thread nope does not exist"),
        (("threads", "history", "nope"), 3, "thread nope does not exist"),
        (("threads", "list", "--status", "nope"), 2, "status"),
    ],
)
async def test_what_is_not_there_is_one_line_and_its_code(
    agentvisor: Command, arguments: tuple[str, ...], code: int, says: str
) -> None:
    ended = await agentvisor(*arguments)
    assert ended.code == code
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1


async def test_threads_are_listed_shown_and_their_history_told(agentvisor: Command) -> None:
    named = unique()
    await agentvisor("run", "waiting", "--input", '{"count": 1}', "--thread", named)
    shown = await agentvisor("threads", "show", named)
    assert "the run completed" in shown.out
    assert '"waited"' in shown.out
    history = (await agentvisor("threads", "history", named)).out.splitlines()
    assert [line.split()[3] for line in history[1:]] == ["2", "1", "0", "-1"]
    assert history[2].split()[4:] == ["wait", "wait", "done"]
    [latest] = json.loads((await agentvisor("threads", "history", named, "--limit", "1", "--json")).out)
    assert latest["values"]["count"] == 2
    thread = json.loads((await agentvisor("threads", "show", named, "--json")).out)
    assert (thread["thread_id"], len(thread["runs"])) == (named, 1)
    threads = json.loads((await agentvisor("threads", "list", "--json", "--limit", "1000")).out)
    assert named in {one["thread_id"] for one in threads}
