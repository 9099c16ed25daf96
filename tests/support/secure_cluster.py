"""A cluster as behind Temporal Cloud's door: TLS, client certificates or API keys, and rights that may be missing.

It is a gRPC proxy before a real Temporal server; certificates are made for it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import grpc.aio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.proxy import _OPTIONS, TemporalProxy, _Everything
from typing_extensions import override

NAME = "cluster.test"
"""What the server's certificate calls it; not what it is reached by."""


@dataclass(frozen=True)
class Signed:
    """A certificate, and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its own is what others trust."""

    def __init__(self, folder: Path, name: str = "our authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        own = _certificate(self._name, self._name, self._key, self._key, authority=True)
        self.certificate = folder / "ca.pem"
        self.certificate.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def sign(self, *names: str) -> Signed:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
        signed = _certificate(subject, self._name, key, self._key, names=names)
        files = Signed(self._folder / f"{names[0]}.pem", self._folder / f"{names[0]}.key")
        files.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signs: ec.EllipticCurvePrivateKey,
    *,
    names: tuple[str, ...] = (),
    authority: bool = False,
) -> x509.Certificate:
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    return made.sign(signs, hashes.SHA256())


class SecureCluster(TemporalProxy):
    """Listens with TLS; takes whom it is told to take, and keeps what callers showed."""

    def __init__(self, target: str, server: Signed | None, *, clients: Path | None = None, key: str = "") -> None:
        super().__init__(target)
        self._server_files, self._clients, self._key_wanted = server, clients, key
        self.shown: set[str] = set()
        """Every `authorization` that came."""
        self.metadata: dict[str, str] = {}
        """The last request's."""
        self.denied: dict[str, grpc.StatusCode] = {}
        """Methods that callers have no right to, and what they are told."""

    @override
    async def start(self) -> None:
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Everything(self._handle),))
        place = self.address or "127.0.0.1:0"
        if self._server_files is None:
            port = self._server.add_insecure_port(place)
        else:
            port = self._server.add_secure_port(place, self._credentials(self._server_files))
        await self._server.start()
        self.address = f"127.0.0.1:{port}"

    def _credentials(self, files: Signed) -> grpc.ServerCredentials:
        pair = (files.key.read_bytes(), files.certificate.read_bytes())
        clients = None if self._clients is None else self._clients.read_bytes()
        return grpc.ssl_server_credentials([pair], clients, require_client_auth=clients is not None)

    @override
    async def _handle(self, path: str, request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        self.metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        shown = self.metadata.get("authorization", "")
        self.shown.add(shown)
        if self._key_wanted and shown != f"Bearer {self._key_wanted}":
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no key of mine")
        if (status := self.denied.get(path.rpartition("/")[2])) is not None:
            await context.abort(status, "Request unauthorized.")
        return await super()._handle(path, request, context)


@asynccontextmanager
async def secure_cluster(
    target: str, server: Signed | None, *, clients: Path | None = None, key: str = ""
) -> AsyncGenerator[SecureCluster]:
    """One, while the context lasts; without a server's certificate it speaks in the clear."""
    cluster = SecureCluster(target, server, clients=clients, key=key)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()
