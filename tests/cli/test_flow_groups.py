"""`agentvisor threads|runs|interrupts|agents` against a real host, as scripts use them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from tests.cli.conftest import Command, Ended, Host, run_command
from tests.host.http.conftest import config_in
from tests.host.http.test_flow_threads import unique
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

from agentvisor.host.api_keys import hash_of
from agentvisor.host.app import running_host
from agentvisor.host.temporal_client import connect

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def paused(agentvisor: Command) -> str:
    """A thread that waits for an answer."""
    named = unique()
    await agentvisor("run", "asking", "--input", '{"count": 1}', "--thread", named)
    return named


def printed(ended: Ended) -> object:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


# --- threads ---------------------------------------------------------------------------------------------------------


async def test_the_last_two_checkpoints_differ_by_what_the_last_step_did(agentvisor: Command) -> None:
    named = unique()
    await agentvisor("run", "waiting", "--input", '{"count": 1}', "--thread", named)
    shown = (await agentvisor("threads", "diff", named)).out.splitlines()
    assert shown[0].endswith(tuple("0123456789")) and shown[0].startswith("--- ")  # noqa: PT018
    assert "@@ log changed @@" in shown
    assert '+  "waited"' in shown
    assert "@@ next @@" in shown
    assert "count" not in "".join(shown)
    found = printed(await agentvisor("threads", "diff", named, "--json"))
    assert found["values"] == {
        "added": {},
        "removed": {},
        "changed": {"log": {"from": ["worked"], "to": ["worked", "waited"]}},
    }  # pyright: ignore[reportIndexIssue]

    history = printed(await agentvisor("threads", "history", named, "--json"))
    ids = [one["checkpoint_id"] for one in history]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    backwards = await agentvisor("threads", "diff", named, ids[0], ids[-2])
    assert '-  "waited"' in backwards.out
    assert (await agentvisor("threads", "diff", named, ids[0])).out.splitlines() == shown
    missing = await agentvisor("threads", "diff", named, "1f000000-0000-6000-8000-000000000000")
    assert (missing.code, "threads history" in missing.err) == (3, True)


async def test_what_only_a_subgraph_did_is_named_and_shown_by_its_namespace(agentvisor: Command, host: Host) -> None:
    named = unique()
    await agentvisor("run", "nested", "--input", '{"count": 1}', "--thread", named)
    shown = (await agentvisor("threads", "diff", named)).out.splitlines()
    (hint,) = [line for line in shown if line.startswith("@@ subgraph child:")]
    namespace = hint.split()[2]
    assert shown[-1] == f"  agentvisor threads diff {named} --namespace '{namespace}'"
    assert not [line for line in shown if "worked" in line]
    below = (await agentvisor("threads", "diff", named, "--namespace", namespace)).out.splitlines()
    assert '+  "worked"' in below

    states = printed(await agentvisor("threads", "history", named, "--namespace", namespace, "--json"))
    newest, parent = [one["checkpoint_id"] for one in states][:2]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    for ids in ([newest], [parent, newest]):
        assert (await agentvisor("threads", "diff", named, *ids, "--namespace", namespace)).out.splitlines() == below
    assert namespace in (await agentvisor("threads", "history", named)).out
    assert await completed(host, f"agentvisor threads diff {named} --namespace ") == [namespace]
    missing = await agentvisor("threads", "diff", named, "--namespace", "child:never")
    assert (missing.code, f"threads history {named}" in missing.err) == (3, True)
    stray = await agentvisor("threads", "diff", named, newest)
    assert (stray.code, "has no checkpoint" in stray.err) == (3, True)


async def test_a_copy_prints_its_id_and_several_threads_are_deleted(agentvisor: Command, paused: str) -> None:
    copied = (await agentvisor("threads", "copy", paused)).out.strip()
    assert printed(await agentvisor("interrupts", "list", "--thread", copied, "--json"))
    refused = await agentvisor("threads", "delete", copied)
    assert (refused.code, refused.out) == (2, "")
    ended = await agentvisor("threads", "delete", copied, "never-was", "--yes")
    assert (ended.code, ended.out) == (3, f"deleted {copied}\n")
    assert "never-was" in ended.err
    assert (await agentvisor("threads", "show", copied)).code == 3
    gone = await agentvisor("threads", "delete", "never-was", "--yes", "--json")
    assert json.loads(gone.out)["deleted"] == []


async def test_a_thread_goes_through_a_file_and_is_answered_under_another_id(
    agentvisor: Command, paused: str, tmp_path: Path
) -> None:
    file = tmp_path / "thread.agentvisor"
    exported = printed(await agentvisor("threads", "export", paused, "-o", str(file), "--json"))
    assert exported == {"thread_id": paused, "file": str(file), "bytes": file.stat().st_size}
    assert list(tmp_path.iterdir()) == [file]
    again = await agentvisor("threads", "export", paused, "-o", str(file))
    assert (again.code, "--force" in again.err) == (4, True)
    taken = await agentvisor("threads", "import", str(file))
    assert (taken.code, f"thread {paused} exists already" in taken.err) == (4, True)
    imported = await agentvisor("threads", "import", str(file), "--thread", f"{paused}.2")
    assert (imported.code, imported.out, imported.err) == (0, f"{paused}.2\n", "")
    answered = await agentvisor("interrupts", "answer", f"{paused}.2", '"yes"', "--wait")
    assert json.loads(answered.out)["log"] == ["worked", "answer yes"]


async def test_a_file_that_is_not_whole_is_refused_with_its_place(
    agentvisor: Command, paused: str, tmp_path: Path
) -> None:
    file, part = tmp_path / "thread", tmp_path / "part"
    await agentvisor("threads", "export", paused, "-o", str(file))
    part.write_bytes(file.read_bytes()[:-20])
    ended = await agentvisor("threads", "import", str(part), "--thread", f"{paused}.3")
    assert ended.code == 2
    assert "is damaged at byte " in ended.err
    assert (await agentvisor("threads", "show", f"{paused}.3")).code == 3
    assert (await agentvisor("threads", "import", str(tmp_path / "nowhere"))).code == 2
    missing = await agentvisor("threads", "export", "never-was", "-o", str(tmp_path / "never"))
    assert (missing.code, (tmp_path / "never").exists()) == (3, False)
    (tmp_path / "link").symlink_to(file)
    assert (await agentvisor("threads", "export", paused, "-o", str(tmp_path / "link"), "--force")).code == 0
    assert (tmp_path / "link").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    reading = asyncio.create_task(asyncio.to_thread((tmp_path / "pipe").read_bytes))
    assert (await agentvisor("threads", "export", paused, "-o", str(tmp_path / "pipe"), "--force")).code == 0
    assert (await reading)[:4] == file.read_bytes()[:4]
    full = await agentvisor("threads", "export", paused, "-o", "/dev/full/x")
    assert (full.code, len(full.err.splitlines())) == (7, 1)


# --- runs ------------------------------------------------------------------------------------------------------------


async def test_runs_are_listed_and_shown_with_what_they_were_given(agentvisor: Command) -> None:
    named = unique()
    await agentvisor("run", "failing", "--input", '{"count": 3}', "--thread", named)
    (row,) = (await agentvisor("runs", "list", named)).out.splitlines()[1:]
    assert "error" in row
    assert row.endswith("ValueError: boom!")
    (run,) = printed(await agentvisor("runs", "list", named, "--json"))  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    shown = (await agentvisor("runs", "show", named, run["run_id"])).out
    assert '{"count": 3}' in shown
    assert "agent_error" in shown
    assert printed(await agentvisor("runs", "show", named, run["run_id"], "--json"))["attempts"][0]["attempt"] == 1  # pyright: ignore[reportIndexIssue]
    assert (await agentvisor("runs", "list", named, "--status", "success")).out.splitlines()[1:] == []
    assert (await agentvisor("runs", "show", named, "never-was")).code == 3


class AtWork:
    """A run that waits at a gate."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.thread, self.gate = unique(), folder / "gate"
        self._url = host.url

    async def begin(self) -> str:
        body = {
            "assistant_id": "waiting",
            "input": {"count": 1, "gate": str(self.gate)},
            "if_not_exists": "create",
            "stream_mode": ["updates", "custom"],
        }
        async with httpx.AsyncClient(base_url=self._url) as http:
            run = (await http.post(f"/threads/{self.thread}/runs", json=body)).json()

        async def is_at_the_gate() -> bool:
            return self.gate.with_suffix(".started").exists()

        await until(is_at_the_gate)
        return run["run_id"]


async def test_the_run_that_is_at_work_is_cancelled(agentvisor: Command, host: Host, tmp_path: Path) -> None:
    work = AtWork(host, tmp_path)
    run = await work.begin()
    cancelled = await agentvisor("runs", "cancel", work.thread, "--wait")
    assert (cancelled.code, cancelled.out) == (0, f"run {run} interrupted\n")
    late = await agentvisor("runs", "cancel", work.thread)
    assert (late.code, "waits or is at work" in late.err) == (3, True)
    assert (await agentvisor("runs", "cancel", work.thread, run)).code == 3


async def test_a_run_is_rolled_back(agentvisor: Command, host: Host, tmp_path: Path) -> None:
    work = AtWork(host, tmp_path)
    run = await work.begin()
    gone = await agentvisor("runs", "cancel", work.thread, run, "--rollback", "--wait", "--json")
    assert printed(gone) == {"thread_id": work.thread, "run_id": run, "status": "gone"}
    assert printed(await agentvisor("runs", "list", work.thread, "--json")) == []


async def tailing(host: Host, *arguments: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "agentvisor.cli.main", "runs", "tail", *arguments, "--url", host.url)
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)


async def test_a_run_is_followed_from_its_start_to_its_end(agentvisor: Command, host: Host, tmp_path: Path) -> None:
    work = AtWork(host, tmp_path)
    run = await work.begin()
    process = await tailing(host, work.thread, "--from-start", "--json")
    assert process.stdout is not None
    first = [json.loads(await process.stdout.readline()) for _ in range(3)]
    assert [one["event"] for one in first] == ["metadata", "custom", "updates"]
    work.gate.touch()
    rest = [json.loads(line) for line in (await process.stdout.read()).splitlines()]
    assert await process.wait() == 0
    assert rest[0]["data"] == {"wait": {"log": ["waited"]}}
    assert (rest[-1]["event"], rest[-1]["data"]["status"], rest[-1]["data"]["run_id"]) == ("end", "success", run)

    ended = await agentvisor("runs", "tail", work.thread)
    assert "answer with" not in ended.out
    assert json.loads(ended.out[ended.out.index("{\n") :])["log"] == ["worked", "waited"]


async def test_of_a_live_run_only_the_last_events_are_shown_then_what_comes(
    agentvisor: Command, host: Host, tmp_path: Path
) -> None:
    work = AtWork(host, tmp_path)
    await work.begin()
    process = await tailing(host, work.thread, "-n", "1", "--json")
    assert process.stdout is not None
    events = [json.loads(await process.stdout.readline())]
    work.gate.touch()
    events += [json.loads(line) for line in (await process.stdout.read()).splitlines()]
    assert [one["event"] for one in events] == ["updates", "updates", "end"]
    assert [[*one["data"]] for one in events[:2]] == [["work"], ["wait"]]
    assert await process.wait() == 0


async def test_who_follows_a_run_to_its_question_is_told_how_to_answer(agentvisor: Command, paused: str) -> None:
    shown = (await agentvisor("runs", "tail", paused)).out.splitlines()
    assert shown[-1] == f"answer with: agentvisor interrupts answer {paused}"


async def test_following_ends_as_the_run_does(agentvisor: Command) -> None:
    named = unique()
    await agentvisor("run", "failing", "--input", '{"count": 1}', "--thread", named)
    ended = await agentvisor("runs", "tail", named)
    assert (ended.code, ended.err) == (1, "ValueError: boom!\n")
    assert (await agentvisor("runs", "tail", "never-was")).code == 3


# --- interrupts, agents ----------------------------------------------------------------------------------------------


async def test_interrupts_are_listed_with_and_without_the_commands_name(agentvisor: Command, paused: str) -> None:
    listed = printed(await agentvisor("interrupts", "list", "--thread", paused, "--json"))
    assert listed == printed(await agentvisor("interrupts", "--thread", paused, "--json"))
    nobody = await agentvisor("interrupts", "answer", paused)
    assert (nobody.code, "ANSWER is missing" in nobody.err) == (2, True)
    run = printed(await agentvisor("interrupts", "answer", paused, '"yes"', "--json"))
    assert run["thread_id"] == paused  # pyright: ignore[reportIndexIssue]


async def test_agents_are_listed_with_their_frameworks(agentvisor: Command) -> None:
    rows = [line.split() for line in (await agentvisor("agents", "list")).out.splitlines()[1:]]
    frameworks = {row[0]: row[1] for row in rows}
    assert (frameworks["asking"], frameworks["plain"]) == ("langgraph", "function")


async def test_an_agents_graph_and_schemas_are_shown(agentvisor: Command) -> None:
    shown = (await agentvisor("agents", "show", "asking")).out
    assert "  work --> ask" in shown
    assert "count: integer" in shown
    drawn = (await agentvisor("agents", "show", "asking", "--graph", "mermaid")).out.splitlines()
    assert drawn[0] == "graph TD;"
    assert '  n1["work"]' in drawn
    assert "  n1 --> n2" in drawn
    found = printed(await agentvisor("agents", "show", "plain", "--json"))
    assert (found["framework"], found["graph"]["nodes"][1]["id"]) == ("function", "plain")  # pyright: ignore[reportIndexIssue]
    missing = await agentvisor("agents", "show", "askin")
    assert (missing.code, len(missing.err.splitlines())) == (3, 1)


# --- completion, keys ------------------------------------------------------------------------------------------------


async def completed(host: Host, typed: str) -> list[str]:
    words = {"_AGENTVISOR_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    return (await run_command(**words, AGENTVISOR_ENDPOINT=host.url)).out.split()


async def test_ids_are_completed_by_asking_the_host(agentvisor: Command, host: Host, paused: str) -> None:
    assert await completed(host, f"agentvisor threads show {paused[:-4]}") == [paused]
    (run,) = printed(await agentvisor("runs", "list", paused, "--json"))  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    assert await completed(host, f"agentvisor runs show {paused} ") == [run["run_id"]]
    assert await completed(host, "agentvisor agents show asking_") == ["asking_at_a_gate"]
    (asked,) = printed(await agentvisor("interrupts", "--thread", paused, "--json"))  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    assert await completed(host, f"agentvisor interrupts answer {paused} --id ") == [asked["id"]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(temporal: TemporalProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Host]:
    keys = [{"name": name, "owner": name, "hash": hash_of(f"{name}s key")} for name in ("anna", "bert")]
    settings = {"http__port": free_ports(1)[0], "http__operator_key": "operators key", "http__api_keys": keys}
    config = config_in(tmp_path_factory.mktemp("guarded"), **settings, temporal__task_queue=unique())
    async with running_host(config, await connect(temporal.address, "default")) as host:
        yield host


async def test_with_an_owners_key_only_what_is_theirs_is_there(guarded: Host, tmp_path: Path) -> None:
    async def typed(key: str, *arguments: str) -> Ended:
        return await run_command(*arguments, AGENTVISOR_ENDPOINT=guarded.url, AGENTVISOR_API_KEY=f"{key}s key")

    named, file = unique(), str(tmp_path / "file")
    assert (await typed("anna", "run", "asking", "--input", '{"count": 1}', "--thread", named)).code == 0
    for command in ("threads show", "threads diff", "threads export", "runs list", "runs tail", "interrupts answer"):
        group, name = command.split()
        more = ('"yes"',) if name == "answer" else ("-o", file) if name == "export" else ()
        assert (await typed("bert", group, name, named, *more)).code == 3, command
    assert (await typed("bert", "threads", "delete", named, "--yes")).code == 3
    assert (await typed("anna", "threads", "export", named, "-o", file)).code == 0
    assert (await typed("bert", "threads", "import", file)).code == 4
    assert (await typed("bert", "threads", "import", file, "--thread", f"{named}.b")).code == 0
    theirs = json.loads((await typed("bert", "interrupts", "--json")).out)
    assert [one["thread_id"] for one in theirs] == [f"{named}.b"]
    assert (await typed("nobody", "threads", "list")).code == 5
