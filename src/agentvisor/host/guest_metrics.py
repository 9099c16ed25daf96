"""What metrics see of one guest, from its start to its end."""

from __future__ import annotations

from time import monotonic

from agentvisor.host.metrics import ENDED_GUESTS, GUEST_START_SECONDS, GUEST_STARTS, GUESTS


class GuestSeen:
    """Its state, counted among those of its agent's guests, and how it ended."""

    def __init__(self, agent: str) -> None:
        self.ending = ""
        """What is known of its end, before it; one that nobody asked for was a loss."""
        self._agent = agent
        self._state = ""
        self._agents = 0
        self._started_at = 0.0
        self._connected = False

    def starts(self) -> None:
        """Its supervisor is started now."""
        self._started_at = monotonic()
        GUEST_STARTS.labels(self._agent).inc()
        self._show("starting")

    def connected(self) -> None:
        """It can start agents."""
        self._connected = True
        GUEST_START_SECONDS.labels(self._agent).observe(monotonic() - self._started_at)
        self.has(self._agents)

    def has(self, agents: int) -> None:
        """So many agents are at work in it, or wait for it."""
        self._agents = agents
        if self._connected:
            self._show("busy" if agents else "idle")

    def ended(self) -> None:
        """Nothing of it is alive."""
        known = self.ending or ("guest_gone" if self._connected else "could_not_start")
        ENDED_GUESTS.labels(self._agent, known).inc()
        self._connected = False
        self._show("")

    def _show(self, state: str) -> None:
        if self._state:
            GUESTS.labels(self._agent, self._state).dec()
        if state:
            GUESTS.labels(self._agent, state).inc()
        self._state = state
