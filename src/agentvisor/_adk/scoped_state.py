"""State by its prefix: `app:` is an app's, `user:` its user's, `temp:` an invocation's, all else a session's."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from google.adk.sessions.state import State
from pydantic_core import to_jsonable_python

from agentvisor.protocol.metadata import Json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScopedState:
    """Values of each scope, without their prefix; none of `temp:`, which is never stored."""

    app: dict[str, Json] = field(default_factory=dict[str, Json])
    user: dict[str, Json] = field(default_factory=dict[str, Json])
    session: dict[str, Json] = field(default_factory=dict[str, Json])

    @property
    def is_shared(self) -> bool:
        """Whether it reaches beyond its session."""
        return bool(self.app or self.user)

    @classmethod
    def of(cls, state: Mapping[str, object]) -> ScopedState:
        """Take a state or its changes apart; a value that JSON does not have becomes what ADK makes of it."""
        scoped = cls()
        for key, value in state.items():
            if key.startswith(State.TEMP_PREFIX):
                continue
            plain = _plain(key, value)
            if key.startswith(State.APP_PREFIX):
                scoped.app[key.removeprefix(State.APP_PREFIX)] = plain
            elif key.startswith(State.USER_PREFIX):
                scoped.user[key.removeprefix(State.USER_PREFIX)] = plain
            else:
                scoped.session[key] = plain
        return scoped

    def merged(self) -> dict[str, Json]:
        """As a session shows it: with the prefixes."""
        return (
            dict(self.session)
            | {State.APP_PREFIX + key: value for key, value in self.app.items()}
            | {State.USER_PREFIX + key: value for key, value in self.user.items()}
        )


def _plain(key: str, value: object) -> Json:
    """A date as text, a model as its fields; of what has no JSON its `repr`, and a line in the log that names it."""
    try:
        return cast("Json", to_jsonable_python(value))
    except Exception:  # noqa: BLE001 (a user's object may raise anything while it is looked at)
        logger.warning(
            "state[%r] is not JSON (%s): what is stored is its text, and only that is there in the next run",
            key,
            type(value).__qualname__,
        )
        # Bytes that are no text, too.
        return cast("Json", to_jsonable_python(value, serialize_unknown=True, bytes_mode="base64"))
