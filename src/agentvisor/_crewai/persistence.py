"""`@persist` on a thread: the state of a flow in the thread's own saves, and in no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from crewai import Flow
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence import FlowPersistence
from crewai.flow.persistence.factory import set_flow_persistence_factory
from crewai.flow.persistence.sqlite import SQLiteFlowPersistence
from pydantic import BaseModel

from agentvisor import checkpoint
from agentvisor._crewai.ledger import Ledger
from agentvisor._crewai.storage import FOLDER
from agentvisor.protocol.metadata import Json

PERSISTED = "crewai.persisted"
"""The key of the saves where no run of a crew or flow is: in a plain agent, in a notebook."""

_ledger: list[Ledger] = []


def persist_on_thread() -> None:
    """Let each flow of this process persist on the thread, where it was to use the file that CrewAI has for all.

    A flow inside of another, or of a tool, has found that file when its class was made.
    """
    set_flow_persistence_factory(ThreadPersistence)
    flows = cast("Any", Flow)
    resolve = flows._resolve_persist_backend  # noqa: SLF001 (the one place where a flow finds it)

    def resolved(flow: Flow[Any], definition: Any) -> FlowPersistence:
        found = resolve(flow, definition)
        return ThreadPersistence() if _is_common(found) else found

    flows._resolve_persist_backend = resolved  # noqa: SLF001


def _is_common(persistence: FlowPersistence) -> bool:
    # By its name: a class that a warm process has made has that one's folder.
    return isinstance(persistence, SQLiteFlowPersistence) and Path(persistence.db_path).parent.name == FOLDER


def set_ledger(ledger: Ledger) -> None:
    """Of this process: what @persist keeps goes with all else that is kept of the run."""
    _ledger[:] = [ledger]


class ThreadPersistence(FlowPersistence):
    """CrewAI's persistence of flows: durable when the method that is persisted has ended.

    Takes no argument; the thread is the run's own, and outside of one `AGENTVISOR_THREAD_ID`'s.
    """

    persistence_type: str = "agentvisor"

    def init_db(self) -> None:
        """There is nothing to prepare."""

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:  # noqa: ARG002 (CrewAI's signature)
        """Keep a state under its id."""
        plain = state_data.model_dump(mode="json") if isinstance(state_data, BaseModel) else dict(state_data)
        state = cast("Json", plain)
        if _ledger:
            _ledger[-1].persist(flow_uuid, state)
            return
        checkpoint.save(PERSISTED, {**self._kept(), flow_uuid: state})

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """The latest state with that id."""
        kept = _ledger[-1].progress.persisted if _ledger else self._kept()
        found = kept.get(flow_uuid)
        return dict(found) if isinstance(found, dict) else None

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """What waits is a question of the thread already; CrewAI's context holds the model's key."""

    def _kept(self) -> dict[str, Json]:
        return cast("dict[str, Json]", checkpoint.load(key=PERSISTED) or {})
