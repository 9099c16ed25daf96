"""Encryption for a Temporal client, and for the workers that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from temporalio.client import Client
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    WorkflowSerializationContext,
)
from temporalio.worker import Interceptor, WorkflowInboundInterceptor, WorkflowInterceptorClassInput

from agentvisor.host.codec.keyring import Key, Keyring
from agentvisor.host.codec.payloads import SealingCodec
from agentvisor.host.codec.terms import SearchTerms
from agentvisor.host.config_encryption import EncryptionConfig
from agentvisor.host.workflow.indexing import WRITTEN

_INDEX = b"agentvisor search v1"


def keyring_of(config: EncryptionConfig) -> Keyring:
    """The keys of a configuration."""
    return Keyring([Key(one.id, one.secret()) for one in config.keys], config.key, encrypts=config.encrypts)


def terms_of(config: EncryptionConfig) -> SearchTerms:
    """How a configuration has owners and metadata in Temporal's index."""
    if not config.keys:
        return SearchTerms()
    if config.search == "off" or config.index_key is None:
        return SearchTerms(kept=not config.encrypts)
    hashing = Key("index", config.index_secret()).derived(_INDEX)
    return SearchTerms(hashing, also_plain=not config.required, writes_plain=not config.encrypts)


def data_converter_of(config: EncryptionConfig) -> DataConverter:
    """What Temporal's client converts values with. Also without keys it says of what is encrypted that it is."""
    codec = SealingCodec(keyring_of(config), required=bool(config.keys) and config.required)
    # Messages and stack traces of failures are text of the agent's.
    failures = DefaultFailureConverterWithEncodedAttributes if codec.encrypts else DefaultFailureConverter
    return DataConverter(payload_codec=codec, failure_converter_class=failures)


def of_workflow(client: Client, workflow_id: str) -> DataConverter:
    """The converter of what is sent to, or read from, one workflow without the SDK's own calls."""
    return client.data_converter.with_context(WorkflowSerializationContext(client.namespace, workflow_id))


def encrypts(client: Client) -> bool:
    """Whether what the client writes is encrypted."""
    codec = client.data_converter.payload_codec
    return isinstance(codec, SealingCodec) and codec.encrypts


def for_workers(client: Client) -> Client:
    """The same client for a worker, where a damaged payload must not cost the thread."""
    codec = client.data_converter.payload_codec
    if not isinstance(codec, SealingCodec):
        return client
    config = client.config()
    config["data_converter"] = replace(client.data_converter, payload_codec=codec.in_workers())
    return Client(**config)


def indexing(terms: SearchTerms) -> Sequence[Interceptor]:
    """What tells a worker's workflows how terms are written (host/workflow/indexing.py)."""
    return [_Indexing(terms)]


class _Indexing(Interceptor):
    def __init__(self, terms: SearchTerms) -> None:
        self._terms = terms

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """Temporal's own place for functions that a workflow may call; it intercepts nothing."""
        input.unsafe_extern_functions[WRITTEN] = self._terms.written  # pyright: ignore[reportUnknownMemberType]
        return None
