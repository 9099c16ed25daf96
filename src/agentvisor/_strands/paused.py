"""A run that waits for an answer ends: Strands does not go on without the tool that has asked."""

from __future__ import annotations

from agentvisor.client.conversation import Paused, conversation


def end_if_paused(event: object) -> None:  # noqa: ARG001 (Strands' signature)
    """Raise `Paused` where a tool has: Strands runs tools in tasks of their own, and drops what ended one of them.

    So no result message without that tool's is stored, and the next run finds the tool use as it was.
    """
    asking = conversation()
    if asking is not None and asking.is_paused:
        raise Paused("a tool has asked a question that waits for an answer")
