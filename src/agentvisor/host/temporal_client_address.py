"""Where Temporal is and what is shown to it: our own settings, and Temporal's profiles and variables behind them.

The rule is decision 0017. Each value that our settings give counts. Of Temporal's own configuration (the profile in
its file, TEMPORAL_* variables before it) the others are taken, unless our settings give the address and name no
profile: an API key or a certificate goes only where it was configured to go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.envconfig import ClientConfigProfile, ClientConfigTLS, DataSource
from temporalio.service import TLSConfig

from agentvisor.host.config import Config, ConfigError
from agentvisor.host.config_tree import TemporalConfig

DEFAULT_ADDRESS = "localhost:7233"
"""Temporal's own default."""

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_SHOWN = re.compile(r"\s*\d*\s*\|")
_VARIABLES = {
    "address": "TEMPORAL_ADDRESS",
    "namespace": "TEMPORAL_NAMESPACE",
    "api_key": "TEMPORAL_API_KEY",
}


@dataclass(frozen=True)
class Connection:
    """How a client connects; with where each part was said."""

    address: str
    namespace: str
    tls: TLSConfig | None = field(default=None, repr=False)
    """None: in the clear."""
    api_key: str | None = field(default=None, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Further headers of every request, of a profile."""
    said_by: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of address, namespace, tls and api_key, those that are no defaults."""
    passed_over: tuple[str, ...] = ()
    """Variables of Temporal's that are set and do not count, because our settings give the address."""


def embedded(address: str, namespace: str) -> Connection:
    """To the server that `agentvisor dev` starts: nothing but its address counts."""
    return Connection(address, namespace)


def connection_of(config: Config) -> Connection:
    """To the cluster that a configuration and Temporal's own name. `ConfigError` where they cannot be used."""
    temporal, variables = config.temporal, config.temporal_variables
    alone = temporal.address is not None and temporal.profile is None and temporal.config_file is None
    profile = ClientConfigProfile() if alone else _profile(temporal, variables)
    source = _named(temporal, variables)
    said: dict[str, str] = {}

    def pick(name: str, own: str | None, theirs: str | None) -> str | None:
        if own is not None:
            said[name] = f"temporal.{name}"
        elif theirs:
            variable = _VARIABLES[name]
            said[name] = f"environment variable {variable}" if variables.get(variable) == theirs else source
        return own if own is not None else theirs or None

    # It has a default, which does not beat what Temporal's own configuration says.
    own_namespace = temporal.namespace if "namespace" in temporal.model_fields_set else None
    address = pick("address", temporal.address, profile.address)
    namespace = pick("namespace", own_namespace, profile.namespace)
    api_key = pick("api_key", _api_key(temporal), profile.api_key)
    tls = _tls(temporal, profile.tls, has_key=api_key is not None)
    if tls is not None:
        own = temporal.tls.is_set or temporal.tls.enabled
        said["tls"] = "temporal.tls" if own else "an API key is set" if profile.tls is None else source
    return Connection(
        address=address or DEFAULT_ADDRESS,
        namespace=namespace or temporal.namespace,
        tls=tls,
        api_key=api_key,
        metadata=dict(profile.grpc_meta),
        said_by=said,
        passed_over=tuple(sorted(variables)) if alone else (),
    )


def is_named(config: Config) -> bool:
    """Whether anything says where Temporal is: our settings, or Temporal's own configuration."""
    return config.temporal.is_elsewhere or "address" in connection_of(config).said_by


def _profile(temporal: TemporalConfig, variables: Mapping[str, str]) -> ClientConfigProfile:
    file = temporal.config_file or Path(variables.get("TEMPORAL_CONFIG_FILE", "/"))
    if not file.exists():
        # Temporal's own loader takes it for an empty one.
        said = "temporal.config_file" if temporal.config_file else "TEMPORAL_CONFIG_FILE"
        raise ConfigError(f"{said}: there is no file {file}")
    try:
        return ClientConfigProfile.load(
            temporal.profile, config_source=temporal.config_file, override_env_vars=dict(variables)
        )
    except Exception as error:  # what it raises has no public name
        raise ConfigError(
            f"Temporal's own configuration ({_named(temporal, variables)}) cannot be used: {_unquoted(error)}; "
            "`temporal config list` shows its profiles"
        ) from error


def _unquoted(error: Exception) -> str:
    """Without the line of the file that a parser shows: an API key may stand in it."""
    return ", ".join(line for line in str(error).splitlines() if line and not _SHOWN.match(line))


def _named(temporal: TemporalConfig, variables: Mapping[str, str]) -> str:
    """What of Temporal's own configuration is read, for people."""
    profile = temporal.profile or variables.get("TEMPORAL_PROFILE") or "default"
    file = temporal.config_file or variables.get("TEMPORAL_CONFIG_FILE")
    return f"profile {profile} of {file or 'the configuration file of Temporal'} and TEMPORAL_* variables"


def _api_key(temporal: TemporalConfig) -> str | None:
    if temporal.api_key is not None:
        return temporal.api_key.get_secret_value()
    if temporal.api_key_file is None:
        return None
    key = _read("temporal.api_key_file", temporal.api_key_file).decode("utf-8", "replace").strip()
    if not key or not key.isascii() or any(one.isspace() for one in key):
        raise ConfigError(f"temporal.api_key_file: {temporal.api_key_file} holds no API key: one line is expected")
    return key


def _tls(temporal: TemporalConfig, theirs: ClientConfigTLS | None, *, has_key: bool) -> TLSConfig | None:
    own = temporal.tls
    if own.enabled is False or not (own.enabled or own.is_set or theirs is not None or has_key):
        return None
    if theirs is not None and theirs.disabled and not (own.enabled or own.is_set):
        return None
    theirs = theirs or ClientConfigTLS()
    authorities = _source("temporal.tls.ca_file", own.ca_file, theirs.server_root_ca_cert)
    if authorities is not None and _CERTIFICATE not in authorities:
        # Temporal's client would take it for an empty list, and say that it does not know who signed.
        raise ConfigError(
            f"temporal.tls.ca_file (TEMPORAL_TLS_SERVER_CA_CERT_PATH): {own.ca_file or theirs.server_root_ca_cert} "
            "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
        )
    # A certificate of ours does not go with a key of theirs.
    mine = own.cert_file is not None
    return TLSConfig(
        domain=own.server_name or theirs.server_name,
        server_root_ca_cert=authorities,
        client_cert=_source("temporal.tls.cert_file", own.cert_file, None if mine else theirs.client_cert),
        client_private_key=_source("temporal.tls.key_file", own.key_file, None if mine else theirs.client_private_key),
    )


def _source(setting: str, own: Path | None, theirs: DataSource | None) -> bytes | None:
    given = own if own is not None else theirs
    match given:
        case Path():
            return _read(setting, given)
        case str():
            return given.encode()
        case _:
            return given


def _read(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: {file} cannot be read: {error.strerror}", file=str(file)) from error
