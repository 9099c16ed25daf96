"""Agents that are killed at random around `agentvisor.once`: no effect is duplicated, and none is lost in silence.

    python benchmarks/effects_torture.py [--kills 1000] [--seed S] [--chance 0.12] [--at-a-time 8] [--minutes 60]

Graphs and plain agents, synchronous and asynchronous, charge ten cards each. At every place around an effect they throw
dice, and kill themselves with SIGKILL where they lose; some are killed by the clock, wherever they are. Half of the
threads have a bank that can tell what happened (`reconcile`), for the others a person answers. What was charged is
counted outside. Fails where a card was not charged once, or tried again although nobody had decided that it was not.
"""

import argparse
import logging
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.flow.conftest import Project
from tests.flow.deaths import VICTIMS
from tests.flow.effects_torture import RESTARTS, Told, torture
from tests.support.temporal import temporal_server


def run(folder: Path, *, kills: int, seed: str, chance: float, at_a_time: int, minutes: float) -> Told:
    told = Told()
    with temporal_server(folder / "temporal") as server:
        project = Project(folder, server.address, "zygote", VICTIMS)
        project.host(RESTARTS, FOLDER=str(folder))
        try:
            threads = torture(project, kills=kills, seed=seed, chance=chance, at_a_time=at_a_time, minutes=minutes)
            for told in threads:
                print(f"{told.killed} kills, {told.effects} effects, {len(told.problems)} problems", flush=True)
        finally:
            for host in project.hosts:
                host.stop()
    return told


def report(told: Told, seconds: float) -> None:
    print(f"\n{told.killed} kills around {told.effects} effects in {seconds:.0f} s")
    for place, times in told.deaths.most_common():
        print(f"  {times:5} killed {place}")
    for who, times in sorted(told.decided.items()):
        print(f"  {times:5} unknown outcomes decided {who}")
    duplicated = sum("was charged" in one for one in told.problems)
    blind = sum("without a decision" in one for one in told.problems)
    print(f"{duplicated} effects duplicated or lost, {blind} tried again blindly, {len(told.problems)} problems in all")
    for problem in told.problems:
        print(f"  {problem}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--chance", type=float, default=0.12)
    parser.add_argument("--at-a-time", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=60, help="begin no thread after this long")
    given = parser.parse_args()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; seed {given.seed}")
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-bench-"))
    began = time.monotonic()
    try:
        told = run(
            folder,
            kills=given.kills,
            seed=given.seed,
            chance=given.chance,
            at_a_time=given.at_a_time,
            minutes=given.minutes,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report(told, time.monotonic() - began)
    sys.exit(1 if told.problems else 0)


if __name__ == "__main__":
    main()
