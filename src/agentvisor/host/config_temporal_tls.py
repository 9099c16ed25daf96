"""TLS towards Temporal, as it is configured: whom this host trusts, and what it shows of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from agentvisor.host.config_section import Section


class TemporalTlsConfig(Section):
    """TLS towards Temporal (docs/operating.md): on as soon as anything here, or an API key, is set.

    What is not set here is taken from Temporal's own configuration, where that is used.
    """

    enabled: bool | None = Field(
        default=None, description="Whether to use TLS; when not set: with an API key, and with anything else of this."
    )
    ca_file: Path | None = Field(
        default=None,
        description="PEM file of the authorities that the server's certificate may be signed by, relative to this "
        "file; when not set, those of the operating system.",
    )
    cert_file: Path | None = Field(default=None, description="PEM file of this host's own certificate (mTLS).")
    key_file: Path | None = Field(default=None, description="PEM file of that certificate's private key.")
    server_name: str | None = Field(
        default=None, min_length=1, description="Name in the server's certificate, where it is not the address's."
    )

    @property
    def files(self) -> dict[str, Path]:
        """Those that are set."""
        named = {"ca_file": self.ca_file, "cert_file": self.cert_file, "key_file": self.key_file}
        return {name: file for name, file in named.items() if file is not None}

    @property
    def is_set(self) -> bool:
        """Whether anything but `enabled` is."""
        return bool(self.files) or self.server_name is not None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            given, other = ("cert_file", "key_file") if self.key_file is None else ("key_file", "cert_file")
            raise ValueError(f"temporal.tls.{given} alone: set temporal.tls.{other} too, a certificate needs its key")
        if self.enabled is False and self.is_set:
            raise ValueError("temporal.tls.enabled is false, and other keys of it are set: leave out it or them")
        return self
