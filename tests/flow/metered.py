"""A host whose metrics a test reads as Prometheus does, and the record of what was seen to move."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec
from uuid import uuid4

import httpx
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.flow.conftest import Project, client_of
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.host.metrics import TABLE

Given = ParamSpec("Given")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

MOVED: dict[str, str] = {}
"""Metric to the test that shows it moved."""


class Metered:
    """A running host, and runs on it."""

    def __init__(self, project: Project, host: HostProcess, headers: dict[str, str] | None = None) -> None:
        self.project = project
        self.host = host
        self.client = client_of(host)
        self.http = httpx.Client(base_url=host.url, headers=headers, timeout=60)
        self.shown: set[str] = set()
        """Gauges that had the value that a test waited for."""

    # --- what it tells ---------------------------------------------------------------------------------------------

    def families(self) -> list[Metric]:
        response = self.http.get("/metrics")
        assert response.status_code == 200, response.text
        return list(text_string_to_metric_families(response.text))

    def samples(self) -> Samples:
        return {
            (one.name, tuple(sorted(one.labels.items()))): one.value
            for family in self.families()
            for one in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels."""
        wanted = labels.items()
        return sum(
            value for (found, has), value in self.samples().items() if found == name and wanted <= dict(has).items()
        )

    def until(self, name: str, value: float, **labels: str) -> None:
        """Wait until the samples have this sum, or more."""
        until(lambda: self.value(name, **labels) >= value)
        self.shown.add(name)

    def counts(self, names: Iterable[str]) -> dict[str, float]:
        """Of counters their sums, of histograms how much was observed."""
        samples = self.samples()
        return {name: sum(value for (found, _), value in samples.items() if found == counted(name)) for name in names}

    # --- what it does ----------------------------------------------------------------------------------------------

    def start(self, what: str, thread: str = "", **given: object) -> tuple[str, str]:
        """A run of `calls` in the background: thread and run."""
        thread = thread or f"metered-{uuid4()}"
        asked = {"call": what, "with": given}
        body = {"assistant_id": "calls", "input": asked, "if_not_exists": "create"}
        response = self.http.post(f"/threads/{thread}/runs", json=body)
        assert response.status_code == 200, response.text
        return thread, response.json()["run_id"]

    def ended(self, thread: str, run: str) -> str:
        """The status that a run ends with."""
        self.http.get(f"/threads/{thread}/runs/{run}/join")
        status: str = self.http.get(f"/threads/{thread}/runs/{run}").json()["status"]
        return status

    def call(self, what: str, **given: object) -> tuple[str, str]:
        """A run of `calls` to its end: thread and status."""
        thread, run = self.start(what, **given)
        return thread, self.ended(thread, run)


def counted(name: str) -> str:
    """The sample that grows with a metric."""
    return f"{name}_count" if TABLE[name].kind == "histogram" else name


def moves(*names: str) -> Callable[[Callable[Given, Any]], Callable[Given, None]]:
    """Of a test that has a `Metered` as its first argument: after it, each of these metrics is another than before.

    A gauge, which comes back to where it was, has to be waited for in the test (`Metered.until`).
    """

    def of(test: Callable[Given, Any]) -> Callable[Given, None]:
        for name in names:
            MOVED[name] = test.__name__

        @functools.wraps(test)
        def measured(*args: Given.args, **kwargs: Given.kwargs) -> None:
            stage: Any = next(one for one in (*args, *kwargs.values()) if isinstance(one, Metered))
            gauges = {name for name in names if TABLE[name].kind == "gauge"}
            growing = [name for name in names if name not in gauges]
            before = stage.counts(growing)
            stage.shown.clear()
            test(*args, **kwargs)
            assert gauges <= stage.shown, f"not waited for: {gauges - stage.shown}"
            until(lambda: not _still(before, stage.counts(growing)), seconds=10)

        return measured

    return of


def _still(before: dict[str, float], after: dict[str, float]) -> list[str]:
    return [name for name in before if after[name] <= before[name]]
