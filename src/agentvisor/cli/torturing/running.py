"""Many threads under random kills, held against what was written outside."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx
import psutil
from rich.console import Console

from agentvisor.cli.torturing.client import Client
from agentvisor.cli.torturing.faults import Mix
from agentvisor.cli.torturing.figures import Figures, figures_of, tell, tell_violations
from agentvisor.cli.torturing.killing import Killing
from agentvisor.cli.torturing.lanes import LEAST_PATIENCE, Lane, Story, check, unanswered
from agentvisor.cli.torturing.records import Records
from agentvisor.cli.torturing.stage import open_stage

PROJECT = Path(__file__).parents[1] / "torture_project"
_TOLD_EVERY = 20.0
_CHECKED_AT_A_TIME = 4
_BACKOFF = "200ms"

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for."""

    minutes: float
    seed: int
    threads: int
    hosts: int
    pause: float
    patience: float


def run_torture(plan: Plan, keep: Path | None) -> bool:
    """Torture, and print what was found; False where something was lost, is stuck, or was left behind.

    `keep`: a folder for records and logs, which is kept; without it they are kept where something was wrong.
    """
    folder = keep.absolute() if keep else Path(tempfile.mkdtemp(prefix="agentvisor-torture-"))
    story, figures = asyncio.run(_torture(plan, folder))
    left = _left()
    tell(figures, console, backoff=_BACKOFF)
    console.print(f"{'processes left':<46} {len(left)}")
    if story.violations or left or not figures.runs:
        tell_violations(story.violations, Records(folder / "records"), console)
        console.print(f"[red]FAILED[/] with --seed {plan.seed}; records, logs and Temporal's database are in {folder}")
        return False
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(
        f"[green]Nothing that was acknowledged is lost, nothing that was finished was run again[/] "
        f"({figures.kills} kills, seed {plan.seed})."
    )
    return True


async def _torture(plan: Plan, folder: Path) -> tuple[Story, Figures]:
    chance = Random(plan.seed)  # noqa: S311 - a seed repeats the mix
    _lay_out(folder, plan, chance)
    mix, records, story = Mix(chance, pause=plan.pause), Records(folder / "records"), Story()
    shares = ", ".join(f"{fault.value} {share:.1f}" for fault, share in mix.shares.items())
    console.print(f"Seed {plan.seed}: {plan.threads} threads, {plan.hosts} hosts, {plan.minutes:g} minutes; {shares}")
    async with open_stage(folder, hosts=plan.hosts, chance=chance) as stage, _http() as http:
        client = Client(stage.url, http)
        killing = Killing(stage, mix, Random(chance.random()))  # noqa: S311
        await _suffer(plan, client, killing, records, story)
        console.print(f"The killing is over; {len(story.threads)} threads are looked at once more.")
        await _check_all(client, records, story, max(plan.patience, LEAST_PATIENCE))
        (folder / "kills.jsonl").write_text(
            "".join(json.dumps([one.fault.value, one.at, one.pid, sorted(one.agents)]) + "\n" for one in killing.done)
        )
        return story, figures_of(story, records, killing.done, client.unanswered)


def _lay_out(folder: Path, plan: Plan, chance: Random) -> None:
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    settings = folder / "agentvisor.yaml"
    values = {
        "RECORDS": str(folder / "records"),
        "BACKOFF": _BACKOFF,
        "COMPACT_EVENTS": str(chance.choice([100, 150, 250])),
        "FOLD_THRESHOLD": str(chance.choice([0, 500, 4_000])),
        # One host alone has room for all of them.
        "LIVE_RUNS": str(plan.threads + 8),
    }
    text = settings.read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    settings.write_text(text)


def _http() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=httpx.Timeout(20, connect=3))


async def _suffer(plan: Plan, client: Client, killing: Killing, records: Records, story: Story) -> None:
    """The lanes under kills until the time is up; then in peace until each has seen its run end."""
    chance, over = Random(plan.seed + 1), asyncio.Event()  # noqa: S311
    # So long that fifty threads do not ask more of a small machine than it has.
    seconds = (0.1, max(0.5, plan.threads / 5))
    lanes = [
        Lane(
            f"torture-{plan.seed}-{number}",
            client,
            records,
            story,
            Random(chance.random()),  # noqa: S311
            patience=plan.patience,
            seconds=seconds,
        )
        for number in range(1, plan.threads + 1)
    ]
    began = time.monotonic()
    telling = asyncio.create_task(_tell_on(began, killing, story))
    async with asyncio.TaskGroup() as group:
        for lane in lanes:
            group.create_task(lane.live(over))
        killers = asyncio.create_task(killing.run())
        try:
            await asyncio.wait([killers], timeout=plan.minutes * 60)
            if killers.done():
                killers.result()
        finally:
            over.set()
            killers.cancel()
            await asyncio.gather(killers, return_exceptions=True)
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)


async def _tell_on(began: float, killing: Killing, story: Story) -> None:
    while True:
        await asyncio.sleep(_TOLD_EVERY)
        at = int(time.monotonic() - began)
        faults = Counter(one.fault for one in killing.done)
        told = ", ".join(f"{count} {fault.value}" for fault, count in faults.most_common())
        console.print(
            f"{at // 60}:{at % 60:02}  {len(story.ended)} runs ended, {len(story.violations)} violations; {told}"
        )


async def _check_all(client: Client, records: Records, story: Story, patience: float) -> None:
    """Once more, all of them, now that everything has come back: what was right in between must be right still."""
    places = asyncio.Semaphore(_CHECKED_AT_A_TIME)
    stuck = {one.thread for one in story.violations}

    async def one(thread: str) -> None:
        async with places:
            try:
                async with asyncio.timeout(patience):
                    if thread not in stuck:
                        story.found(await check(thread, client, records, story))
                    story.compactions += await client.compactions(thread)
            except TimeoutError:
                story.found([unanswered(thread)])

    await asyncio.gather(*(one(thread) for thread, runs in story.threads.items() if runs))


def _left() -> list[psutil.Process]:
    """Processes of the torture that outlived it."""
    return [one for one in psutil.Process().children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
