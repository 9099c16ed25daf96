"""The last stage of the Dockerfile: what a container of its image is started with."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field

from tests.deploy.files import DEPLOY

DOCKERFILE = DEPLOY / "Dockerfile"


@dataclass
class Image:
    """What the image says to who starts it."""

    entrypoint: list[str] = field(default_factory=list[str])
    command: list[str] = field(default_factory=list[str])
    healthcheck: list[str] = field(default_factory=list[str])
    environment: dict[str, str] = field(default_factory=dict[str, str])
    user: str = ""
    volume: str = ""
    folder: str = ""
    stop_signal: str = ""
    bases: list[str] = field(default_factory=list[str])
    copied: list[str] = field(default_factory=list[str])
    """From the build's context, by any stage."""


def image() -> Image:
    found = Image()
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        match word:
            case "FROM":
                found = Image(bases=[*found.bases, rest.split()[0]], copied=found.copied)
            case "ARG" if rest.startswith("PYTHON="):
                found.bases.append(rest.partition(":")[2] or rest.partition("=")[2])
            case "COPY":
                found.copied += [one for one in rest.split()[:-1] if not one.startswith("--")]
            case "ENV":
                found.environment |= dict(one.split("=", 1) for one in shlex.split(rest))
            case "ENTRYPOINT":
                found.entrypoint = json.loads(rest)
            case "CMD":
                found.command = json.loads(rest)
            case "HEALTHCHECK":
                asked = re.search(r"\bCMD (\[.*\])", rest)
                assert asked, "the health check is run by a shell"
                found.healthcheck = json.loads(asked[1])
            case "USER":
                found.user = rest
            case "VOLUME":
                found.volume = rest
            case "WORKDIR":
                found.folder = rest
            case "STOPSIGNAL":
                found.stop_signal = rest
            case _:
                pass
    return found
