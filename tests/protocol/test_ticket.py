"""A ticket is one host's word, and nobody else's."""

import pytest

from agentvisor.core.errors import PermissionRefused
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.protocol.ticket import RunTicket

TICKET = RunTicket(ThreadId("thread:1"), RunId("run.1"), 2)
KEY = b"k" * 32


def test_a_ticket_reads_as_it_was_signed() -> None:
    assert RunTicket.verified(TICKET.signed(KEY), KEY) == TICKET


def test_a_ticket_of_another_host_is_refused() -> None:
    with pytest.raises(PermissionRefused):
        RunTicket.verified(TICKET.signed(b"x" * 32), KEY)


def test_a_ticket_with_any_character_changed_is_refused() -> None:
    signed = TICKET.signed(KEY)
    for index, character in enumerate(signed):
        forged = signed[:index] + ("A" if character != "A" else "B") + signed[index + 1 :]
        # The last character of base64 may hold bits that count for nothing.
        if index not in (signed.index(".") - 1, len(signed) - 1):
            with pytest.raises(PermissionRefused):
                RunTicket.verified(forged, KEY)


@pytest.mark.parametrize("text", ["", ".", "a", "a.b", "\N{SNOWMAN}", "..", "e30.", TICKET.signed(KEY) + "?"])
def test_what_is_no_ticket_is_refused(text: str) -> None:
    with pytest.raises(PermissionRefused):
        RunTicket.verified(text, KEY)
