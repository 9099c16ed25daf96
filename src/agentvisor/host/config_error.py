"""A configuration that cannot be used: what is wrong, where it was written, and what was probably meant."""

from typing import ClassVar

from agentvisor.core.errors import AgentVisorError


class ConfigError(AgentVisorError, ValueError):
    """The file, the environment or an option sets something that is not there, or not like that."""

    code: ClassVar[str] = "config_invalid"
