"""What stands in paths: ids, checked by the one rule."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from agentvisor.core.ids import RunId, ThreadId, run_id, thread_id

ThreadInPath = Annotated[ThreadId, AfterValidator(thread_id)]
RunInPath = Annotated[RunId, AfterValidator(run_id)]
