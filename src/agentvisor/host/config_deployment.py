"""Worker versioning: which version of a deployment the hosts are, for Temporal's Worker Deployments."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, model_validator

from agentvisor.host.config_section import Section

# Temporal writes a version as "name.build" or "name:build", and keeps names that begin with "__" for itself.
_NAME = re.compile(r"(?!__)[^.:\s]{1,200}")
_BUILD_ID = re.compile(r"(?!__)\S{1,200}")


class DeploymentConfig(Section):
    """Which version of which Worker Deployment this host is; not set, hosts of all versions share the work."""

    name: str | None = Field(
        default=None,
        description="Name of the Worker Deployment; with it and a build id, the host gets work only once its version "
        "was made current (`agentvisor deployment promote`).",
    )
    build_id: str | None = Field(
        default=None, description="Version of this host with its agents: an image's tag, a commit."
    )

    @property
    def is_set(self) -> bool:
        return self.name is not None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.name is None) != (self.build_id is None):
            given, missing = ("name", "build_id") if self.build_id is None else ("build_id", "name")
            raise ValueError(
                f"temporal.deployment.{given} is set and temporal.deployment.{missing} is not: set both, or none"
            )
        if self.name is not None and not _NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} is no name of a deployment: no dot, colon or space, not __ at its start, 200 characters"
            )
        if self.build_id is not None and not _BUILD_ID.fullmatch(self.build_id):
            raise ValueError(f"{self.build_id!r} is no build id: no space, not __ at its start, 200 characters")
        return self
