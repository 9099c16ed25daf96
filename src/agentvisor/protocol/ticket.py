"""The run ticket: one host's signed word for which attempt of which thread a message belongs to."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import NamedTuple

from agentvisor.core.errors import PermissionRefused
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.protocol.v1.guest_pb2 import AgentTask


class RunTicket(NamedTuple):
    """Names one attempt of one run of one thread.

    It is shown with every message of a guest, and given to supervisors only: an agent never holds one.
    """

    thread_id: ThreadId
    run_id: RunId
    attempt: int

    @classmethod
    def of(cls, task: AgentTask) -> RunTicket:
        """The ticket of a task."""
        return cls(ThreadId(task.thread_id), RunId(task.run_id), task.attempt)

    def signed(self, key: bytes) -> str:
        """Return the ticket as text that only a holder of `key` can make."""
        body = json.dumps([self.thread_id, self.run_id, self.attempt], separators=(",", ":")).encode()
        return f"{_text(body)}.{_text(_signature(key, body))}"

    @classmethod
    def verified(cls, text: str, key: bytes) -> RunTicket:
        """Read a ticket back, or raise `PermissionRefused` where `key` did not sign it. Takes constant time."""
        body_text, _, signature_text = text.partition(".")
        body, signature = _bytes(body_text), _bytes(signature_text)
        if not hmac.compare_digest(_signature(key, body), signature):
            raise PermissionRefused("the run ticket is not one of this host's")
        thread_id, run_id, attempt = json.loads(body)
        return cls(ThreadId(thread_id), RunId(run_id), attempt)


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        # Signs nothing, so that a malformed ticket is refused like a forged one.
        return b""
