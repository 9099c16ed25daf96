"""What can be configured of the HTTP end: where it listens, who may call, how much it takes, and its webhooks."""

import base64
import re
from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from agentvisor.host.config_auth import ApiKeyConfig, ApiKeys, JwtConfig, Origins
from agentvisor.host.config_section import Section
from agentvisor.host.config_units import KIB, MIB, Duration, Size

TcpPort = Annotated[int, Field(ge=1, le=65535)]
# What a header carries unchanged: servers and clients strip spaces at its ends, and do not agree on what is not ASCII.
_KEY = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def signing_key(secret: str) -> bytes:
    """The key that a webhook's secret stands for, as the libraries of Standard Webhooks read it; empty: it is none."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        return b""


class HttpConfig(Section):
    """The HTTP end."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: TcpPort = Field(default=8090, description="TCP port to listen on.")
    operator_key: SecretStr | None = Field(
        default=None, description="Key of the operator, who sees and may do everything, over HTTP and gRPC."
    )
    api_keys: ApiKeys = Field(
        default_factory=list[ApiKeyConfig],
        repr=False,
        description="Keys of owners, each `{name, hash, owner}` and, if it is to end, `expires`; as a variable, JSON.",
    )
    cors_origins: Origins = Field(
        default_factory=list[str],
        description="Origins of the pages that may call, with commas between them; * for all, where keys are needed. "
        "When not set: all where keys are needed, else this machine's, LangGraph Studio and agent-chat-ui.",
    )
    max_body: Size = Field(default=4 * MIB, description="Largest body of a request.")
    max_import: Size = Field(default=1024 * MIB, description="Largest file of a thread that is imported.")
    max_streams: int = Field(
        default=1000, ge=1, description="Streams that one key holds open on one host; past it, 429."
    )
    peer_key: SecretStr | None = Field(
        default=None,
        description="Key by which the hosts of a deployment know each other, the same on all of them; made of the "
        "operator_key when not set. Needed to listen beyond loopback.",
    )
    peer_address: str | None = Field(
        default=None,
        description="host:port at which the other hosts reach this one; when not set, `host` and `port`, and this "
        "machine's own address where it listens on all.",
    )
    max_url: Size = Field(default=16 * KIB, ge=1 * KIB, le=1 * MIB, description="Longest URL of a request.")
    max_headers: Size = Field(
        default=32 * KIB, ge=4 * KIB, le=1 * MIB, description="Size of all headers of a request together."
    )
    read_timeout: Duration = Field(
        default=timedelta(minutes=1),
        gt=timedelta(0),
        description="Time that a client has to send a request's headers, and then its body.",
    )
    keep_alive: Duration = Field(
        default=timedelta(seconds=75),
        gt=timedelta(0),
        description="Time that a connection without a request is kept; longer than a load balancer keeps its own.",
    )
    jwt: JwtConfig = Field(default_factory=JwtConfig, description="Tokens of owners.")
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Key that webhooks are signed with: whsec_ and base64, or any text; not set, they are unsigned.",
    )
    webhook_allow_private: bool = Field(
        default=False, description="Webhooks may go to private and loopback addresses, and over plain http."
    )
    webhook_max_body: Size = Field(
        default=1 * MIB, le=16 * MIB, description="Largest body of a webhook; past it, the run's values are left out."
    )

    @property
    def needs_key(self) -> bool:
        """Whether callers must show who they are: any way for them to do so is configured."""
        return self.operator_key is not None or bool(self.api_keys) or self.jwt.is_set

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        for what in ("name", "hash"):
            values = [getattr(one, what) for one in self.api_keys]
            if len(set(values)) < len(values):
                raise ValueError(f"two api_keys have the same {what}: give each its own")
        return self

    @model_validator(mode="after")
    def _pages_show_a_key(self) -> Self:
        if "*" in self.cors_origins and not self.needs_key:
            raise ValueError(
                "cors_origins * lets every page of the web drive this host: name the origins, or set http.operator_key"
            )
        return self

    @field_validator("peer_address")
    @classmethod
    def _is_an_address(cls, address: str | None) -> str | None:
        if address is not None and not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}", address):
            raise ValueError(f"{address!r} is no address of a host: write host:port, without http://")
        return address

    @field_validator("operator_key", "peer_key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not _KEY.fullmatch(key.get_secret_value()):
            raise ValueError(
                "this key is empty, or no header can carry it: use printable ASCII characters, with no space at the "
                "start or end; leave the setting out for no key"
            )
        return key

    @field_validator("webhook_secret")
    @classmethod
    def _is_a_key(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not signing_key(secret.get_secret_value()):
            raise ValueError("this secret is empty, or what follows whsec_ is not base64: leave it out to sign nothing")
        return secret
