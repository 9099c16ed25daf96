"""An identity provider of the tests: signs tokens, and publishes its public keys over real HTTP."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://issuer.example/", "agents"


@cache
def rsa_key(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Made once: it takes a while. `number` tells one from another."""
    del number
    return rsa.generate_private_key(65537, bits)


EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def public(key: Any, key_id: str | None = None, **more: object) -> dict[str, object]:
    """A key as the issuer publishes it."""
    algorithm: Any = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}.get(
        next((kind for kind in (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey) if isinstance(key, kind)), None),  # type: ignore[arg-type]
        OKPAlgorithm,
    )
    entry: dict[str, object] = json.loads(algorithm.to_jwk(key.public_key()))
    return entry | ({"kid": key_id} if key_id else {}) | more


def claims(**other: object) -> dict[str, object]:
    """Those of a good token, but for what is given; None leaves a claim out."""
    now = datetime.now(UTC)
    good: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "anna",
        "exp": now + timedelta(minutes=5),
        "nbf": now,
        "iat": now,
    }
    return {name: value for name, value in (good | other).items() if value is not None}


def token(key: Any, algorithm: str = "RS256", key_id: str | None = "one", **other: object) -> str:
    return jwt.encode(claims(**other), key, algorithm, headers={"kid": key_id} if key_id else None)


@dataclass
class Publisher:
    """What the issuer's address answers now."""

    keys: list[dict[str, object]] = field(default_factory=list)
    status: int = 200
    body: bytes | None = None
    location: str = ""
    asked: int = 0
    url: str = ""


@contextmanager
def publishing(*keys: dict[str, object]) -> Generator[Publisher]:
    """The issuer's address, over real HTTP on this machine."""
    publisher = Publisher([*keys])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            publisher.asked += 1
            body = publisher.body if publisher.body is not None else json.dumps({"keys": publisher.keys}).encode()
            self.send_response(publisher.status)
            if publisher.location:
                self.send_header("location", publisher.location)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    publisher.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    try:
        yield publisher
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
