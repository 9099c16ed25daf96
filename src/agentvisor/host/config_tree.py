"""All that can be configured, as one typed tree: names, units, defaults, and what each setting is for."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from agentvisor.host.config_auth import is_loopback
from agentvisor.host.config_deployment import DeploymentConfig
from agentvisor.host.config_encryption import EncryptionConfig
from agentvisor.host.config_http import HttpConfig, TcpPort
from agentvisor.host.config_section import Section
from agentvisor.host.config_telemetry import LogConfig, TelemetryConfig
from agentvisor.host.config_temporal_tls import TemporalTlsConfig
from agentvisor.host.config_units import KIB, MIB, Duration, LastingDuration, Size


def _carried_by_a_url(name: str) -> str:
    # Clients take "." and ".." out of a path, so that nobody could ask for such an agent.
    if name in (".", "..") or not re.fullmatch(r"[^/\x00-\x1f\x7f]{1,128}", name):
        raise ValueError(
            f"{name[:80]!r} is no name of an agent: use 1 to 128 characters, no slash and no control character, "
            "and not . or .."
        )
    return name


AgentName = Annotated[str, AfterValidator(_carried_by_a_url)]


class AgentConfig(Section):
    """One agent that runs can name."""

    entrypoint: str = Field(description="What to run: ./file.py:name (relative to this file) or package.module:name.")
    framework: Literal["langgraph", "strands", "adk", "crewai", "pydantic_ai", "openai_agents", "function"] | None = (
        Field(default=None, description="Runner of the agent; found out from the entrypoint when not set.")
    )
    env: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Environment variables of the agent's process."
    )
    inherit_env: list[str] = Field(
        default_factory=list[str],
        description="Names of the host's own environment variables that the agent's process has too (an API key); of "
        "the others it has PATH, HOME, the locale and their like only.",
    )
    python_path: list[Path] = Field(
        default_factory=list[Path], description="Folders that the agent imports from, besides that of this file."
    )
    preload: bool = Field(
        default=False, description="Import the agent's module once in the warm process that its runs are forked from."
    )

    @model_validator(mode="before")
    @classmethod
    def _entrypoint_alone(cls, value: object) -> object:
        if isinstance(value, str):
            return {"entrypoint": value}
        if not isinstance(value, dict | AgentConfig):
            raise ValueError("write its entrypoint, ./file.py:name or package.module:name, or a table with one")
        return cast("object", value)

    @field_validator("env")
    @classmethod
    def _an_environment(cls, env: dict[str, str]) -> dict[str, str]:
        for name, text in env.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(f"no process can have the variable {name!r}: no = in its name, and NUL nowhere")
        return env

    @field_validator("framework", mode="before")
    @classmethod
    def _as_it_is_installed(cls, value: object) -> object:
        # pydantic-ai and openai-agents are what their users install.
        return value.replace("-", "_") if isinstance(value, str) else value

    @field_validator("entrypoint")
    @classmethod
    def _has_a_name(cls, value: str) -> str:
        target, colon, name = value.rpartition(":")
        if not (target and colon and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name)):
            raise ValueError(f"{value!r} is no entrypoint: write ./file.py:name or package.module:name")
        return value


class RunRestartConfig(Section):
    """How a run is restarted by itself when its process, guest, host or Temporal was lost."""

    max_attempts: int = Field(
        default=3, ge=0, le=1_000_000, description="Restarts of one run; 0 makes the first loss its error."
    )
    initial_backoff: Duration = Field(default=timedelta(seconds=2), description="Wait before the first restart.")
    max_backoff: Duration = Field(default=timedelta(seconds=30), description="Longest wait before a restart.")
    max_elapsed: Duration = Field(
        default=timedelta(minutes=10), description="Time that a run may spend without a live attempt, in all."
    )
    reset_on_progress: bool = Field(
        default=False,
        description="An attempt that stored a new checkpoint starts the count of restarts, and the wait, anew.",
    )


class TemporalConfig(Section):
    """Temporal, the only store, and how threads use it."""

    address: str | None = Field(
        default=None,
        description="host:port of a Temporal cluster. When not set: `agentvisor serve` takes it from Temporal's own "
        "configuration, else localhost:7233; `agentvisor dev` starts a server.",
    )
    profile: str | None = Field(
        default=None,
        min_length=1,
        description="Profile of Temporal's own configuration file to connect by; when not set, TEMPORAL_PROFILE's or "
        "`default`, where no address is set.",
    )
    config_file: Path | None = Field(
        default=None,
        description="Temporal's own configuration file (TOML), relative to this one; when not set, "
        "TEMPORAL_CONFIG_FILE's or the one in the user's folder.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="API key of Temporal (Temporal Cloud); sent with every request, by TLS "
        "unless temporal.tls.enabled is false.",
    )
    api_key_file: Path | None = Field(
        default=None, description="Or a file that holds it and nothing else, relative to this one."
    )
    tls: TemporalTlsConfig = Field(default_factory=TemporalTlsConfig, description="TLS towards Temporal.")
    namespace: str = Field(default="default", min_length=1, description="Temporal namespace that holds the threads.")
    task_queue: str = Field(
        default="agentvisor", min_length=1, description="Task queue of this deployment; one for each set of agents."
    )
    max_checkpoint_history: int = Field(
        default=100,
        ge=-(2**31),
        lt=2**31,
        description="Checkpoints kept for each namespace of a thread; 0 or less keeps all.",
    )
    thread_ttl: LastingDuration | None = Field(
        default=None,
        description="How long a thread lives after its last use whose creator does not say; none: until it is deleted.",
    )
    thread_ttl_strategy: Literal["delete", "keep_latest"] = Field(
        default="delete", description="What is done with it then: keep_latest only drops its older checkpoints."
    )
    stateless_grace: Duration = Field(
        default=timedelta(minutes=1),
        description="How long a run without a thread is there after its end, where no host was left to delete it.",
    )
    max_run_history: int = Field(
        default=100,
        ge=-(2**31),
        lt=2**31,
        description="Finished runs kept for each thread; 0 or less keeps all.",
    )
    pending_writes_enabled: bool = Field(
        default=True, description="Keep the writes of finished tasks of an unfinished super-step; pinned at creation."
    )
    run_timeout: LastingDuration = Field(default=timedelta(minutes=30), description="Time budget of one run.")
    heartbeat_timeout: Duration = Field(
        default=timedelta(seconds=10), description="Silence after which a host is given up and its runs restart."
    )
    idle_heartbeat: LastingDuration = Field(
        default=timedelta(seconds=1), description="Heartbeat of a quiet run; bounds how soon a cancel is seen."
    )
    fold_threshold: Size = Field(
        default=24 * KIB, le=512 * KIB, description="Size of a run's log past which a commit folds it into the thread."
    )
    fold_quiet: Duration = Field(default=timedelta(seconds=1), description="A log that is quiet for so long is folded.")
    fold_age: Duration = Field(default=timedelta(seconds=3), description="A log older than this is folded.")
    linger: Duration = Field(
        default=timedelta(milliseconds=1), description="How long a commit of pending writes waits for company."
    )
    compact_events: int = Field(
        default=8000,
        ge=100,
        le=40_000,
        description="Events of a workflow's history at which it continues as new: 100 to 40,000.",
    )
    compact_bytes: Size = Field(
        default=16 * MIB, le=40 * MIB, description="Size of a workflow's history at which it continues as new."
    )
    drain_timeout: Duration = Field(
        default=timedelta(seconds=30),
        description="What runs have, when `agentvisor serve` is told to stop, to come to a point where they can be "
        "given to another host; forced after it, or by a second signal. `agentvisor dev` stops at once.",
    )
    session_idle_timeout: LastingDuration = Field(
        default=timedelta(seconds=10), description="Silence that ends the session of a client outside any run."
    )
    run_restart: RunRestartConfig = Field(default_factory=RunRestartConfig, description="Automatic restarts.")
    deployment: DeploymentConfig = Field(default_factory=DeploymentConfig, description="Worker versioning.")

    @property
    def is_elsewhere(self) -> bool:
        """Whether it says where a Temporal is, so that `agentvisor dev` starts none."""
        return self.address is not None or self.profile is not None or self.config_file is not None

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str | None) -> str | None:
        form = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}"
        if address is not None and not (re.fullmatch(form, address) and 0 < int(address.rpartition(":")[2]) <= 65535):
            raise ValueError(f"{address!r} is no address of Temporal: write host:port, without a scheme")
        return address

    @model_validator(mode="after")
    def _one_api_key(self) -> Self:
        if self.api_key is not None and self.api_key_file is not None:
            raise ValueError("temporal.api_key and temporal.api_key_file are both set: leave out one")
        return self

    @model_validator(mode="after")
    def _heartbeats_fit(self) -> Self:
        if self.idle_heartbeat * 2 > self.heartbeat_timeout:
            raise ValueError("idle_heartbeat must be at most half of heartbeat_timeout, or one lost beat loses the run")
        return self


class GrpcConfig(Section):
    """The gRPC end for clients outside a guest."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=0, ge=0, le=65535, description="TCP port to listen on; 0 takes any free one.")


class GuestConfig(Section):
    """Guests: the processes that agents run in."""

    start_method: Literal["zygote", "exec"] = Field(
        default="zygote", description="zygote forks agent processes from a warm one, exec starts each from nothing."
    )
    sandbox: Literal["process"] = Field(default="process", description="What stands between an agent and the host.")
    max_live_runs: int = Field(default=32, ge=1, description="Runs alive on this host at a time.")
    heartbeat: LastingDuration = Field(default=timedelta(seconds=1), description="Heartbeat between guest and host.")
    stop_grace: Duration = Field(
        default=timedelta(seconds=2), description="From asking an agent process to stop to killing it."
    )
    idle_timeout: Duration = Field(
        default=timedelta(minutes=10),
        description="After which a guest of an owner that has nothing to do ends; those for threads of nobody stay.",
    )
    max_idle_guests: int = Field(
        default=8, ge=1, description="Guests of owners with nothing to do that are kept; past it, the longest idle end."
    )
    operation_timeout: LastingDuration = Field(
        default=timedelta(seconds=60),
        description="Time budget of what an agent's code does without running: an update of a thread's state, a "
        "description of its graph.",
    )
    log_bytes_per_run: Size = Field(default=1 * MIB, description="Output of an agent that is kept for each run.")
    memory_limit: Size = Field(
        default=0,
        description="Memory of one agent with all that it starts; over it, it is killed and its run restarts. 0 sets "
        "no limit: then the kernel's own counts.",
    )

    @field_validator("memory_limit")
    @classmethod
    def _holds_an_agent(cls, limit: int) -> int:
        if 0 < limit < 16 * MIB:
            raise ValueError(f"no agent fits into {limit} bytes: write 512MiB, or 0 for no limit")
        return limit


class StorageConfig(Section):
    """What a thread may hold, and where values go that are too large for Temporal.

    Sizes over these are refused before anything is sent; Temporal's payload limit of 2 MiB is behind them.
    """

    max_inline_value: Size = Field(
        default=1_500_000, le=1_900_000, description="Stored (compressed) size of one channel value."
    )
    max_state: Size = Field(default=1_800_000, le=1_950_000, description="Stored size of a whole thread.")
    max_value: Size = Field(default=64 * MIB, description="Size of one channel value before compression.")
    max_input: Size = Field(default=1_500_000, le=1_900_000, description="Size of the input of a run.")
    max_record: Size = Field(
        default=256 * KIB, le=1 * MIB, description="Size of one checkpoint without its values, metadata included."
    )
    max_metadata: Size = Field(default=64 * KIB, le=256 * KIB, description="Size of one checkpoint's metadata.")
    max_namespaces: int = Field(default=20_000, ge=1, description="Namespaces (subgraph calls) of one thread.")
    max_effects: int = Field(
        default=5_000,
        ge=1,
        description="Effects (agentvisor.once) of one thread; past it, new ones are refused.",
    )
    max_pending_writes: int = Field(
        default=10_000, ge=1, description="Pending writes of one super-step; past it, tasks' writes are dropped."
    )
    max_pending_write_bytes: Size = Field(
        default=1 * MIB, le=1_500_000, description="Size of a super-step's pending writes; past it, they are dropped."
    )
    url: str | None = Field(
        default=None,
        description="External storage for values over max_inline_value: file:///folder, s3://bucket/prefix, gs://, az://.",
    )
    options: dict[str, str] = Field(
        default_factory=dict[str, str], repr=False, description="Options of external storage, by obstore's names."
    )
    retry_for: Duration = Field(
        default=timedelta(seconds=60), description="How long a run waits for external storage that does not answer."
    )
    max_output: Size = Field(
        default=1_500_000, le=1_600_000, description="Size of what a plain agent returns, as JSON."
    )
    patch_chain: int = Field(
        default=64,
        ge=0,
        lt=2**32,
        description="Differences stored in a row before a whole value again; 0 stores no differences.",
    )

    @property
    def max_stored_value(self) -> int:
        """Stored size of one value, wherever it is stored."""
        return self.max_value if self.url else self.max_inline_value


class StoreConfig(Section):
    """The store of items beside threads (docs/store.md)."""

    default_ttl: LastingDuration | None = Field(
        default=None, description="How long an item lives whose writer does not say; none: until it is deleted."
    )
    refresh_on_read: bool = Field(
        default=True, description="Reading an item begins its time to live anew, where the reader does not say."
    )
    most_searched: int = Field(
        default=10_000, ge=1, description="Namespaces that one search or list may have to look through."
    )
    erase_after: Duration = Field(
        default=timedelta(seconds=60),
        description="After so long, what was deleted is erased from Temporal's history too.",
    )


class DevConfig(Section):
    """The embedded Temporal server."""

    data_dir: Path = Field(default=Path(".agentvisor"), description="Folder of its database, relative to this file.")
    temporal_port: TcpPort = Field(default=7233, description="TCP port of the embedded Temporal server.")
    temporal_ui_port: TcpPort = Field(default=8233, description="TCP port of Temporal's UI.")


class Config(Section):
    """The whole configuration of a host. After loading, every path in it is absolute."""

    base_dir: Path = Field(default_factory=Path.cwd, description="Folder of the file, or of the project; no setting.")
    temporal_variables: dict[str, str] = Field(
        default_factory=dict[str, str],
        repr=False,
        description="Temporal's own variables (TEMPORAL_*), as they were when this was loaded; no setting.",
    )
    agents: dict[AgentName, AgentConfig] = Field(default_factory=dict, description="The agents, by name.")
    temporal: TemporalConfig = Field(default_factory=TemporalConfig)
    http: HttpConfig = Field(default_factory=HttpConfig)
    grpc: GrpcConfig = Field(default_factory=GrpcConfig)
    guest: GuestConfig = Field(default_factory=GuestConfig)
    storage: StorageConfig = Field(default_factory=StorageConfig)
    store: StoreConfig = Field(default_factory=StoreConfig)
    encryption: EncryptionConfig = Field(default_factory=EncryptionConfig)
    dev: DevConfig = Field(default_factory=DevConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    telemetry: TelemetryConfig = Field(default_factory=TelemetryConfig)

    @model_validator(mode="after")
    def _key_beyond_loopback(self) -> Self:
        for section, host in (("http", self.http.host), ("grpc", self.grpc.host)):
            if not self.http.needs_key and not is_loopback(host):
                raise ValueError(
                    f"{section}.host {host} lets other machines in, and that needs a key: set http.operator_key "
                    "(AGENTVISOR_HTTP_OPERATOR_KEY), http.api_keys or http.jwt, or listen on 127.0.0.1"
                )
        return self

    @model_validator(mode="after")
    def _peers_know_each_other(self) -> Self:
        http = self.http
        if http.peer_key is None and http.operator_key is None and not is_loopback(http.host):
            raise ValueError(
                f"http.host {http.host} lets other machines in, and hosts need a key to know each other: set "
                "http.peer_key (AGENTVISOR_HTTP_PEER_KEY) to a secret that all hosts of the deployment share"
            )
        return self

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        ports = {"http.port": self.http.port, "grpc.port": self.grpc.port}
        if not self.temporal.is_elsewhere:
            ports |= {"dev.temporal_port": self.dev.temporal_port, "dev.temporal_ui_port": self.dev.temporal_ui_port}
        taken: dict[int, str] = {}
        for setting, port in ports.items():
            first = taken.setdefault(port, setting)
            if port and first != setting:
                raise ValueError(f"{first} and {setting} are both {port}: give each its own port")
        return self
