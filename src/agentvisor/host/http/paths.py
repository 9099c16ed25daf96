"""What stands in paths: ids, checked by the one rule; and the paths that need no key and are asked all the time."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from agentvisor.core.ids import RunId, ThreadId, run_id, thread_id

ThreadInPath = Annotated[ThreadId, AfterValidator(thread_id)]
RunInPath = Annotated[RunId, AfterValidator(run_id)]

PROBES = ("/ok", "/livez", "/readyz")
"""Health checks (meta.py): whoever asks them has no key, and asks every few seconds."""
