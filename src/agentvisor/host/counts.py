"""What workflows on this host count, as its metrics; and what it knows of its agents for their labels."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import Counter

from agentvisor.host.config_tree import AgentConfig
from agentvisor.host.metrics import (
    AGENT_START_SECONDS,
    COMPACTED_BYTES,
    COMPACTIONS,
    ENDED_GUESTS,
    EXPIRED_INTERRUPTS,
    FAILED_THREADS,
    FRAMEWORKS,
    GIVEN_UP_RUNS,
    GUEST_START_SECONDS,
    GUEST_STARTS,
    OTHER,
    OUTCOMES,
    RESTARTS,
    RUN_SECONDS,
    RUNS,
    SHED,
    begin,
)
from agentvisor.host.workflow.hearing import Counted

_COUNTERS: dict[Counted, Counter] = {
    Counted.COMPACTED: COMPACTIONS,
    Counted.SHED: SHED,
    Counted.FAILED: FAILED_THREADS,
    Counted.RESTARTED: RESTARTS,
    Counted.GIVEN_UP: GIVEN_UP_RUNS,
    Counted.EXPIRED: EXPIRED_INTERRUPTS,
}

_UNKNOWN = "unknown"
_frameworks: dict[str, str] = {}
"""Of the agents in the configurations of this process's hosts; `unknown` until one of them was run."""


def know_agents(agents: Mapping[str, AgentConfig]) -> None:
    """Agents of these names may be labels from now on; what is counted of them is there, at 0."""
    for name, agent in agents.items():
        if agent.framework or name not in _frameworks:
            _frameworks[name] = _UNKNOWN
            learn_framework(name, agent.framework or "")
    for metric in (GUEST_STARTS, GUEST_START_SECONDS, ENDED_GUESTS, AGENT_START_SECONDS):
        begin(metric, agent=agents)


def learn_framework(agent: str, framework: str) -> None:
    """An agent's process has said what it is: believed where that is one of ours."""
    if framework in FRAMEWORKS and agent in _frameworks:
        _frameworks[agent] = framework
        begin(RUNS, agent=[agent], framework=[framework])


def count_workflow(what: Counted, labels: tuple[str, ...], number: float) -> None:
    """Count what a thread's workflow did on this host."""
    if what is Counted.CARRIED:
        COMPACTED_BYTES.observe(number)
    elif what is Counted.ENDED:
        _count_run(*labels, seconds=number)
    else:
        _COUNTERS[what].labels(*labels).inc(number)


def _count_run(agent: str, framework: str, outcome: str, *, seconds: float) -> None:
    known = agent if agent in _frameworks else OTHER
    told = framework if framework in FRAMEWORKS else _frameworks.get(agent, OTHER)
    shown = outcome if outcome in OUTCOMES else OTHER
    RUNS.labels(known, told, shown).inc()
    RUN_SECONDS.labels(shown).observe(seconds)
