"""The guests of this host: one for each agent and owner, started when it is needed and replaced when it is gone.

What an agent leaves behind in its guest (a file, a process, a module that it has changed) is never met by an agent that
works for somebody else.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextvars import Context
from types import MappingProxyType, TracebackType
from typing import Self

from agentvisor.core.errors import UnknownAgent
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.host.config_tree import AgentConfig, Config
from agentvisor.host.counts import know_agents
from agentvisor.host.guest import Guest
from agentvisor.host.guest_folders import clear_abandoned
from agentvisor.host.preloading import preloaded
from agentvisor.host.running_agent import AgentEnd, AgentHandler, RunningAgent
from agentvisor.host.sandboxes import Sandbox
from agentvisor.host.sandboxes.process import start_process
from agentvisor.protocol.v1.guest_pb2 import AgentTask, GuestSetup

__all__ = ["AgentEnd", "AgentHandler", "Guests", "RunningAgent"]


class Guests:
    """Starts agents. Enter and leave it in the main thread: guests end with the thread that started them."""

    def __init__(self, config: Config, sandbox: Sandbox = start_process) -> None:
        self._config = config
        know_agents(config.agents)
        self._sandbox = sandbox
        self._folder = config.dev.data_dir / "guests"
        self.generation = 0
        """Counts how often the agents' code has changed, as far as this host was told."""
        self._ticket_key = secrets.token_bytes(32)
        self._guests: dict[tuple[str, Owner], Guest] = {}
        self._lives: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Clear what a host that was killed has left of its guests."""
        await asyncio.to_thread(clear_abandoned, self._folder)
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """End every guest and all that runs in them."""
        for life in self._lives:
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)

    async def prewarm(self, agent: str) -> None:
        """Have a guest ready for this agent: it has imported the framework before a run asks for it.

        For threads that nobody owns; an owner's first run waits for a guest of theirs.
        """
        await self._guest_for(agent, EVERYONE).warm()

    async def start_agent(
        self,
        agent: str,
        task: AgentTask,
        handler: AgentHandler,
        *,
        owner: Owner,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> RunningAgent:
        """Start an attempt in the agent's guest for the thread's owner; return when its process runs, or `ended` says
        why it does not.

        `task` needs thread, run, attempt and spec; what the configuration says of the agent is added here.
        `environment`: of the agent's process, beside what the configuration says.
        """
        settings = self._agent(agent)
        storage = self._config.storage
        task.entrypoint = settings.entrypoint
        task.framework = settings.framework or ""
        del task.search_path[:]
        task.search_path.extend(self._search_path(settings))
        task.max_value_bytes = storage.max_value
        task.max_inline_value_bytes = storage.max_stored_value
        task.patch_chain = storage.patch_chain
        return await self._guest_for(agent, owner).start_agent(task, handler, {**settings.env, **environment})

    def pids(self, owner: Owner = EVERYONE) -> dict[str, int]:
        """The supervisors that take an owner's new runs, by agent."""
        return {
            agent: guest.pid for (agent, whose), guest in self._guests.items() if guest.takes_runs and whose == owner
        }

    def reload(self, config: Config | None = None) -> None:
        """The agents' code has changed: new runs go to new guests, the present ones end after their last run."""
        self._config = config or self._config
        know_agents(self._config.agents)
        self.generation += 1
        for guest in self._guests.values():
            guest.retire()
        self._guests.clear()

    def _guest_for(self, agent: str, owner: Owner) -> Guest:
        for gone in [key for key, one in self._guests.items() if not one.takes_runs]:
            del self._guests[gone]
        guest = self._guests.get((agent, owner))
        if guest is None:
            self._end_idle()
            settings = self._agent(agent)
            guest = Guest(
                agent,
                self._setup(settings),
                ticket_key=self._ticket_key,
                heartbeat_seconds=self._config.guest.heartbeat.total_seconds(),
                folder=self._folder,
                idle_seconds=None if owner == EVERYONE else self._config.guest.idle_timeout.total_seconds(),
            )
            self._guests[agent, owner] = guest
            # It outlives the run that it is started for: what is logged of it names no run.
            life = asyncio.create_task(
                guest.run(self._sandbox, settings.env), name=f"guest of {agent}", context=Context()
            )
            self._lives.add(life)
            life.add_done_callback(self._lives.discard)
        return guest

    def _end_idle(self) -> None:
        """Leave room for one more among the guests of owners that have nothing to do; the longest idle go."""
        idle = {one: one.idle_since for (_, owner), one in self._guests.items() if owner != EVERYONE}
        waiting = sorted((since, id(one), one) for one, since in idle.items() if since is not None)
        for _, _, one in waiting[: max(0, len(waiting) - self._config.guest.max_idle_guests + 1)]:
            one.retire()

    def _setup(self, agent: AgentConfig) -> GuestSetup:
        return GuestSetup(
            start_method=self._config.guest.start_method,
            preload=preloaded(agent, self._config.base_dir),
            preload_entrypoint=agent.entrypoint if agent.preload else "",
            search_path=self._search_path(agent),
            log_bytes_per_run=self._config.guest.log_bytes_per_run,
            working_folder=str(self._config.base_dir),
            memory_limit=self._config.guest.memory_limit,
        )

    def _search_path(self, agent: AgentConfig) -> list[str]:
        return [str(self._config.base_dir), *(str(folder) for folder in agent.python_path)]

    def _agent(self, name: str) -> AgentConfig:
        try:
            return self._config.agents[name]
        except KeyError:
            known = ", ".join(sorted(self._config.agents)) or "none"
            raise UnknownAgent(f"there is no agent {name!r}; configured: {known}", agent=name) from None
