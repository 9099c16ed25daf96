"""External checkpoint storage: values too large for Temporal, in an object store."""

from __future__ import annotations

from agentvisor.host.codec.objects import ObjectCipher
from agentvisor.host.config_tree import StorageConfig
from agentvisor.host.external.backend import open_backend
from agentvisor.host.external.measured import MeasuredBackend
from agentvisor.host.external.storage import ExternalStorage


def open_external(config: StorageConfig, cipher: ObjectCipher | None = None) -> ExternalStorage | None:
    """The external storage of a configuration; None where it has none. `InvalidInput` where it cannot be.

    `cipher`: encrypts its objects; none: they are not.
    """
    if config.url is None:
        return None
    backend = MeasuredBackend(open_backend(config.url, config.options))
    return ExternalStorage(backend, config.url, retry_for=config.retry_for.total_seconds(), cipher=cipher)
