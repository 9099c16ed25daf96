"""Why something that Temporal or external storage gave is refused: a word in its error, by which the host counts."""

from __future__ import annotations

from enum import Enum

from agentvisor.core.errors import AgentVisorError, Corrupt, Sealed


class Refused(Enum):
    """The detail `reason` of an error."""

    PLAINTEXT = "plaintext"
    """It is not encrypted, and that is required."""
    UNKNOWN_KEY = "unknown_key"
    """Its key is not here."""
    OTHER_KEY = "other_key"
    """Another key is here under the id of its key."""
    MOVED = "moved"
    """It was written for another place."""
    DAMAGED = "damaged"
    """It was changed or cut: with the right key it does not decrypt."""

    def sealed(self, message: str, **details: str) -> Sealed:
        """The error where another host, or another configuration, could read it."""
        return Sealed(message, reason=self.value, **details)

    def corrupt(self, message: str) -> Corrupt:
        """The error where nobody ever will."""
        return Corrupt(message, reason=self.value)


def why(error: AgentVisorError) -> str:
    """The reason that an error has; what was no value when it was decrypted is damaged, whoever says so."""
    return error.details.get("reason", Refused.DAMAGED.value)
