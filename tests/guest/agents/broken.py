"""Does not import."""

import agentvisor.no_such_module  # noqa: F401
