"""All that the tests of a session share: one Temporal server, and a host for each project, which is kept warm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from agentvisor.testing.host import Host
from agentvisor.testing.temporal import Temporal

Project = Path | str | Mapping[str, object]
"""A folder or file with the configuration; or agents by name, each an entrypoint or a table as in agentvisor.yaml."""


class Stage:
    """Starts what is asked for, when it is asked for, and ends it all in `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporal: Temporal | None = None
        self._hosts: dict[str, Host] = {}

    @property
    def temporal(self) -> Temporal:
        """The session's server."""
        if self._temporal is None:
            temporal = Temporal(self._folder / "temporal")
            temporal.start()
            self._temporal = temporal
        return self._temporal

    def host(self, project: Project, settings: Mapping[str, object], root: Path) -> Host:
        """The running host of a project with these settings; paths are relative to `root`."""
        place, agents = _place(project, root)
        wanted = {**settings, **agents}
        key = json.dumps([str(place), wanted], sort_keys=True)
        host = self._hosts.get(key)
        if host is None:
            folder = self._folder / f"host-{len(self._hosts)}"
            folder.mkdir(parents=True)
            host = self._hosts[key] = Host(place, self.temporal, folder, wanted)
        host.start()
        return host

    def close(self) -> None:
        """End the hosts, then their Temporal."""
        try:
            for host in self._hosts.values():
                host.stop()
        finally:
            if self._temporal is not None:
                self._temporal.stop()


def _place(project: Project, root: Path) -> tuple[Path, dict[str, object]]:
    """Where the configuration is, and the agents that are given in code: these live in the root folder."""
    if isinstance(project, Path | str):
        return root / project, {}
    return root, {"agents": {name: _agent(agent, root) for name, agent in project.items()}}


def _agent(agent: object, root: Path) -> dict[str, object]:
    table: dict[str, object] = {"entrypoint": agent} if isinstance(agent, str) else {**_table(agent)}
    target, _, name = str(table["entrypoint"]).rpartition(":")
    if target.endswith(".py"):
        file = (root / target).resolve()
        table["entrypoint"] = f"{file}:{name}"
        table.setdefault("python_path", [str(file.parent)])
    else:
        table.setdefault("python_path", [str(root)])
    return table


def _table(agent: object) -> Mapping[str, object]:
    if not isinstance(agent, Mapping):
        raise TypeError(f"an agent is an entrypoint, or a table with one, not {agent!r}")
    return agent  # pyright: ignore[reportUnknownVariableType] (it is checked where the configuration is loaded)
