"""What only a person at a terminal meets: questions, colours, progress, Ctrl-C."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Command, Host
from tests.cli.terminal import Terminal
from tests.host.http.test_flow_threads import unique

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_an_answer_is_asked_for_with_its_question(agentvisor: Command, host: Host) -> None:
    named = unique()
    await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)

    def answer() -> tuple[int, str]:
        with Terminal("interrupts", "answer", named, "--wait", AGENTVISOR_ENDPOINT=host.url) as terminal:
            terminal.until("Answer")
            terminal.type("{not")
            terminal.until("is not JSON")
            terminal.type("yes")
            return terminal.ends(), terminal.seen

    code, seen = await asyncio.to_thread(answer)
    assert code == 0
    assert 'asking asks: {"question": "sure?"}' in seen
    assert '"answer yes"' in seen


async def test_of_several_questions_one_is_chosen(agentvisor: Command, host: Host) -> None:
    named = unique()
    await agentvisor("run", "choosing", "--input", "{}", "--thread", named)
    waiting = json.loads((await agentvisor("interrupts", "--thread", named, "--json")).out)
    assert len(waiting) == 2

    def answer() -> str:
        with Terminal("interrupts", "answer", named, "--wait", AGENTVISOR_ENDPOINT=host.url) as terminal:
            terminal.until("Which one?")
            terminal.type("2")
            terminal.until("asks")
            terminal.type("no")
            terminal.ends()
            return terminal.seen

    seen = await asyncio.to_thread(answer)
    assert waiting[1]["value"]["question"] in seen.partition("asks: ")[2].partition("\n")[0]
    left = json.loads((await agentvisor("interrupts", "--thread", named, "--json")).out)
    assert [one["id"] for one in left] == [waiting[0]["id"]]


async def test_a_delete_is_agreed_to_or_nothing_is_deleted(agentvisor: Command, host: Host) -> None:
    one, other = unique(), unique()
    for named in (one, other):
        await agentvisor("run", "plain", "--input", "{}", "--thread", named)

    def delete(said: str) -> tuple[int, str]:
        with Terminal("threads", "delete", one, other, AGENTVISOR_ENDPOINT=host.url) as terminal:
            terminal.until("[y/N]")
            terminal.type(said)
            return terminal.ends(), terminal.seen

    code, seen = await asyncio.to_thread(delete, "n")
    assert (code, f"Delete {one}, {other}" in seen) == (130, True)
    assert (await agentvisor("threads", "show", one)).code == 0
    code, seen = await asyncio.to_thread(delete, "y")
    assert (code, f"deleted {other}" in seen) == (0, True)
    assert (await agentvisor("threads", "show", one)).code == 3


async def test_tables_fit_the_terminal_and_colours_can_be_off(agentvisor: Command, host: Host) -> None:
    named = unique()
    await agentvisor("run", "failing", "--input", '{"count": 1}', "--thread", named)

    def listed(**environment: str) -> str:
        with Terminal("runs", "list", named, columns=60, AGENTVISOR_ENDPOINT=host.url, **environment) as terminal:
            assert terminal.ends() == 0
            return terminal.raw

    coloured, plain = await asyncio.to_thread(listed), await asyncio.to_thread(listed, NO_COLOR="1")
    assert "\x1b[1m" in coloured
    assert "\x1b[3" not in plain
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", plain).splitlines()
    assert "ValueError: boom!" in "".join(lines)
    assert max(map(len, lines)) <= 60
    assert "\x1b" not in (await agentvisor("runs", "list", named)).out


async def test_ctrl_c_leaves_a_followed_run_alone(agentvisor: Command, host: Host, tmp_path: Path) -> None:
    named, gate = unique(), tmp_path / "gate"
    given = json.dumps({"count": 1, "gate": str(gate)})
    started = asyncio.create_task(agentvisor("run", "waiting", "--input", given, "--thread", named))
    while not gate.with_suffix(".started").exists():
        await asyncio.sleep(0.05)

    def follow() -> tuple[int, str]:
        with Terminal("runs", "tail", named, AGENTVISOR_ENDPOINT=host.url) as terminal:
            terminal.until("work")
            terminal.press("C")
            return terminal.ends(), terminal.seen

    code, _ = await asyncio.to_thread(follow)
    assert code == 130
    assert json.loads((await agentvisor("runs", "list", named, "--json")).out)[0]["status"] == "running"
    gate.touch()
    assert (await started).code == 0


async def test_progress_is_seen_and_is_not_in_what_is_printed(agentvisor: Command, host: Host, tmp_path: Path) -> None:
    named = unique()
    await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)

    def export() -> str:
        file = str(tmp_path / "thread")
        with Terminal("threads", "export", named, "-o", file, AGENTVISOR_ENDPOINT=host.url) as terminal:
            assert terminal.ends() == 0
            return terminal.raw

    raw = await asyncio.to_thread(export)
    assert "\x1b[?25l" in raw or "━" in raw
    piped = await agentvisor("threads", "export", named, "-o", str(tmp_path / "again"))
    assert piped.err == ""
    assert "━" not in piped.out
