"""A running host as the commands see it: requests that fail with our own errors, streams that go on when cut."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import httpx
import typer

from agentvisor.cli.facts import fields, objects
from agentvisor.core.errors import ERRORS, Internal, InvalidInput, PermissionRefused, Unavailable
from agentvisor.host.render_typed import Json

_PATIENCE = 60.0
"""Seconds that a run's stream may be out of reach: a host that restarts takes the run up again."""
_ALL = "all"
"""What no host gives an event as its id: all events are asked for."""
_PAGE = 200
"""Threads of one answer: each is read, and an answer must come in time."""
_AWAY = (httpx.HTTPError, Unavailable)
"""How it is told that a host is out of reach for now: by nobody, by itself, or by the proxy before it (a 502)."""
_BACKLOG = 3.0
"""Seconds that are spent on events of before."""
_BY_NAME = {one.__name__: one for one in ERRORS.values()}
_LATER = (408, 429)
"""Statuses of HTTP itself of a request that may be taken later."""
_NO_ROUTE = ("Not Found", "Method Not Allowed")
"""What HTTP itself says of a path that no route has; of what a route does not find more is said."""
_ENDED = ("success", "error", "timeout", "interrupted")

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="AGENTVISOR_ENDPOINT",
        help="Where the host listens. Default: as this folder's agentvisor.yaml says, else http://127.0.0.1:8090.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", envvar="AGENTVISOR_API_KEY", help="Key of the host.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event of a run's stream."""

    event: str
    data: Json
    id: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what a search finds."""

    found: list[dict[str, Json]]
    more: bool
    """Whether the host has others behind them."""


class Host:
    """A running host."""

    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client = client
        self._url = url

    def get(self, path: str, **query: str | int) -> Json:
        """The answer to a GET."""
        return self._request("GET", path, None, query)

    def post(self, path: str, body: Json = None) -> Json:
        """The answer to a POST."""
        return self._request("POST", path, body, {})

    def pages(self, path: str, **query: str | int) -> Iterator[Json]:
        """The answers to a GET that come in pages, as they are asked for."""
        following: str | None = None
        while True:
            named = query if following is None else {**query, "after": following}
            response = self._answered("GET", path, None, named)
            yield self._json(response)
            following = response.headers.get("x-pagination-next")
            if following is None:
                return

    def searched(self, path: str, body: dict[str, Json], most: int | None) -> Iterator[Page]:
        """What a search finds, `most` at most (None: all), in pages as they are asked for."""
        offset = 0
        while True:
            limit = _PAGE if most is None else min(_PAGE, most - offset)
            response = self._answered("POST", path, {**body, "limit": limit, "offset": offset}, {})
            following = response.headers.get("x-pagination-next", "")
            more = following.isdecimal() and int(following) > offset
            yield Page(objects(self._json(response)), more)
            if not more or (most is not None and int(following) >= most):
                return
            offset = int(following)

    def _request(self, method: str, path: str, body: Json, query: dict[str, str | int]) -> Json:
        response = self._answered(method, path, body, query)
        return self._json(response) if response.content else None

    def _answered(self, method: str, path: str, body: Json, query: dict[str, str | int]) -> httpx.Response:
        try:
            response = self._client.request(method, path, json=body, params=query)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        self._raise_for(response)
        return response

    def delete(self, path: str) -> None:
        """A DELETE."""
        self._request("DELETE", path, None, {})

    @contextmanager
    def download(self, path: str) -> Generator[httpx.Response]:
        """An answer that is read piece by piece by the caller."""
        try:
            with self._client.stream("GET", path, timeout=httpx.Timeout(30, read=120)) as response:
                if not response.is_success:
                    response.read()
                self._raise_for(response)
                yield response
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def upload(self, path: str, pieces: Iterator[bytes], **query: str) -> Json:
        """The answer to a POST of a file."""
        headers = {"content-type": "application/vnd.agentvisor.thread"}
        timeout = httpx.Timeout(30, read=600, write=120)
        try:
            response = self._client.post(path, params=query, content=pieces, headers=headers, timeout=timeout)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        self._raise_for(response)
        return self._json(response)

    def wait(self, path: str) -> Json:
        """The answer to a POST that may take as long as a run; the host sends signs of life meanwhile."""
        try:
            response = self._client.post(path, timeout=httpx.Timeout(30, read=60))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        self._raise_for(response)
        answer = self._json(response) if response.content else None
        failed = answer.get("__error__") if isinstance(answer, dict) else None
        if isinstance(failed, dict):  # the status was sent before it was known
            raise _BY_NAME.get(str(failed.get("error")), Internal)(str(failed.get("message")))
        return answer

    def stream(self, path: str, body: Json) -> Iterator[StreamedEvent]:
        """Start a run and yield its events to its end; where the stream is cut, it is taken up where it was."""
        reader = _Reading()
        try:
            yield from self._read("POST", path, body, reader)
        except httpx.HTTPError as error:
            if reader.place is None:
                raise self._unreachable(error) from error
        else:
            if reader.place is None or self._has_ended(reader.place):
                return
        yield from self._on(reader, str(reader.place))

    def kept(self, place: str, seconds: float) -> list[StreamedEvent]:
        """The events of a run that are kept by now, as many as come within so many seconds after one another."""
        reader, found = _Reading(last_id=_ALL), list[StreamedEvent]()
        give_up = time.monotonic() + _BACKLOG
        try:
            for event in self._read("GET", f"{place}/stream", None, reader, silence=seconds):
                found.append(event)
                if time.monotonic() > give_up:
                    break
        except httpx.ReadTimeout:
            pass  # what comes from here on comes live
        except _AWAY:
            pass  # whoever follows it from here on is patient
        return found

    def follow(self, place: str, last_id: str = "") -> Iterator[StreamedEvent]:
        """The events of a run, all or those after one, to its end; where the stream is cut, it is taken up again."""
        yield from self._on(_Reading(last_id=last_id or _ALL, place=place), place)

    def joined(self, place: str) -> Json:
        """What a run that was accepted comes to, once it has ended; through whatever restarts."""
        give_up = time.monotonic() + _PATIENCE
        while not self._has_ended(place):
            try:
                self.get(f"{place}/join")
                give_up = time.monotonic() + _PATIENCE
            except Unavailable:
                if time.monotonic() > give_up:
                    raise
            time.sleep(0.2)
        return self.patiently(f"{place}/join")

    def patiently(self, path: str) -> Json:
        """The answer to a GET about a run that has been followed; its host may have gone, and be back soon."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            try:
                return self.get(path)
            except Unavailable:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.5)

    def _on(self, reader: _Reading, place: str) -> Iterator[StreamedEvent]:
        """The rest of a run's events. After a cut also those of a run that has ended: its last ones are kept."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            seen, cut = reader.last_id, False
            try:
                yield from self._read("GET", f"{place}/stream", None, reader)
            except _AWAY as error:
                if time.monotonic() > give_up:
                    raise (error if isinstance(error, Unavailable) else self._unreachable(error)) from error
                cut = True
            if not cut and self._has_ended(place):
                return
            if reader.last_id != seen:
                give_up = time.monotonic() + _PATIENCE
            time.sleep(0.2)

    def _read(
        self, method: str, path: str, body: Json, reader: _Reading, *, silence: float = 30
    ) -> Iterator[StreamedEvent]:
        headers = {"Last-Event-ID": reader.last_id or _ALL} if method == "GET" else {}
        timeout = httpx.Timeout(10, read=silence)  # a live stream sends a heartbeat every 5 seconds
        with self._client.stream(method, path, json=body, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                response.read()
            self._raise_for(response)
            reader.place = response.headers.get("content-location", reader.place)
            yield from reader.events(response.iter_lines())

    def _has_ended(self, place: str) -> bool:
        try:
            run = self.get(place)
        except Unavailable:
            return False
        return isinstance(run, dict) and run.get("status") in _ENDED

    def _raise_for(self, response: httpx.Response) -> None:
        """Raise the error that the host answered with, as its own class."""
        if response.status_code == 401:
            raise PermissionRefused(
                "the host refuses the key, or there was none: give it as --key or AGENTVISOR_API_KEY"
            )
        if response.is_success:
            return
        try:
            facts = fields(cast("Json", response.json()))
        except ValueError:
            facts = {}
        if "code" not in facts or "message" not in facts:  # no error of ours: a proxy, another program, a redirect
            raise self._no_host(response)
        if facts["message"] in _NO_ROUTE:
            raise Unavailable(
                f"the host that answers at {self._url} has nothing at {response.request.url.path}: is that its own "
                "address (--url, AGENTVISOR_ENDPOINT), and is it of this version?"
            )
        other = Unavailable if response.status_code in _LATER else Internal
        raise ERRORS.get(str(facts["code"]), other)(str(facts["message"]))

    def _json(self, response: httpx.Response) -> Json:
        try:
            return cast("Json", response.json())
        except ValueError:
            raise self._no_host(response) from None

    def _no_host(self, response: httpx.Response) -> Unavailable:
        kind = response.headers.get("content-type", "nothing").partition(";")[0]
        moved = f", and points to {response.headers['location']}" if response.has_redirect_location else ""
        return Unavailable(
            f"what answers at {self._url} is no AgentVisor host (HTTP {response.status_code}, {kind}{moved}): name one "
            "with --url or AGENTVISOR_ENDPOINT"
        )

    def _unreachable(self, error: httpx.HTTPError) -> Unavailable:
        return Unavailable(
            f"no AgentVisor host answers at {self._url} ({error or type(error).__name__}): start one with "
            "`agentvisor dev`, or name another with --url or AGENTVISOR_ENDPOINT"
        )


@dataclass(slots=True)
class _Reading:
    """Where a reader of server-sent events is."""

    last_id: str = ""
    place: str | None = None
    """Path of the run."""

    def events(self, lines: Iterator[str]) -> Iterator[StreamedEvent]:
        event, data, number = "", list[str](), self.last_id
        for line in lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line and data:
                self.last_id = number
                yield StreamedEvent(event, cast("Json", json.loads("\n".join(data))), number)
                event, data = "", []
            elif name == "event":
                event = value
            elif name == "data":
                data.append(value)
            elif name == "id":
                number = value


@contextmanager
def connected(url: str | None, key: str | None, *, seconds: float = 30) -> Generator[Host]:
    """A client of the host at this URL, else of the one that this folder's configuration starts, with its key.

    `seconds`: what one answer may take.
    """
    if url is None:
        from agentvisor.host.config import http_in_force  # loaded where it is needed: no Tab shall wait for it

        http = http_in_force(Path.cwd(), environ=os.environ)
        url = _url_of(http.host, http.port)
        if key is None and http.operator_key is not None:
            key = http.operator_key.get_secret_value()
    base = _checked(url)
    headers = {"x-api-key": _sendable(key)} if key else {}
    # A proxy is for other machines, never for this one.
    nearby = httpx.URL(base).host in ("127.0.0.1", "localhost", "::1")
    try:
        client = httpx.Client(base_url=base, headers=headers, timeout=seconds, trust_env=not nearby)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidInput(f"the proxy that is set (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) is none: {error}") from error
    with client:
        yield Host(client, str(client.base_url.copy_with(userinfo=b"")).rstrip("/"))


def _checked(url: str) -> str:
    """The URL without what may be left out of it."""
    base = url.rstrip("/") if "//" in url else f"http://{url}".rstrip("/")
    try:
        parsed = httpx.URL(base)
        sound = parsed.scheme in ("http", "https") and parsed.host and (parsed.port or 1) in range(1, 65536)
        reason = "" if sound else ": write it as http://127.0.0.1:8090"
    except (httpx.InvalidURL, ValueError) as error:
        sound, reason = False, f": {error}"
    if not sound:
        told = re.sub(r"//[^/]*@", "//", url)  # without a password
        raise InvalidInput(f"{told!r} is no URL of a host{reason} (--url, AGENTVISOR_ENDPOINT)")
    return base


def _sendable(key: str) -> str:
    """The key, if it can be sent: what a file's end or a copied quotation mark adds to it is none of it."""
    if key.isascii() and key.isprintable() and key == key.strip():
        return key
    raise InvalidInput(
        "the key has characters that no key has, such as a line break, a space at an end or a letter beyond ASCII: "
        "see what --key, AGENTVISOR_API_KEY or http.operator_key holds"
    )


def _url_of(address: str, port: int) -> str:
    """A host that listens on every address is reached at this machine's own."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 - nothing listens here
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
