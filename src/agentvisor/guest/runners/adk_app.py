"""The app that a user's object is, always resumable: an App, an agent or workflow, or a function that makes one."""

from __future__ import annotations

import inspect
import logging
import re
import warnings
from collections.abc import Callable

from google.adk.apps import App, ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import BaseNode

from agentvisor.core.errors import InvalidInput

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")


async def app_of(agent: object, name: str, plugin: BasePlugin) -> App:
    """The app to run, with our plugin before the user's.

    Args:
        agent: what the entrypoint names.
        name: of the app, for an agent that comes without one: what the configuration calls it, so that its sessions are
            found again whatever the agent's own name becomes.
        plugin: ours.
    """
    made = await _made(agent)
    if isinstance(made, BaseNode):
        made = App(name=name if _is_name(name) else made.name, root_agent=made)
    if not isinstance(made, App):
        raise InvalidInput(
            f"{_told(agent)} gave a {type(made).__qualname__}: an agent of ADK is an Agent, a Workflow, an App, or a "
            "function without arguments that returns one of them"
        )
    chosen = made.resumability_config
    if chosen is not None and not chosen.is_resumable:
        logger.warning("App %s is not resumable: under AgentVisor it is, or a restart would begin anew", made.name)
    return made.model_copy(
        update={"resumability_config": _resumable(), "plugins": [plugin, *made.plugins]},
    )


async def _made(agent: object) -> object:
    if isinstance(agent, App | BaseNode) or not callable(agent):
        return agent
    try:
        inspect.signature(agent).bind()
    except TypeError as error:
        raise InvalidInput(f"{_told(agent)} makes an agent of ADK and must not ask for arguments ({error})") from error
    made: object = agent()
    return await made if inspect.isawaitable(made) else made


def _resumable() -> ResumabilityConfig:
    with warnings.catch_warnings():
        # That it is experimental was weighed; a user cannot do anything about it.
        warnings.simplefilter("ignore")
        return ResumabilityConfig(is_resumable=True)


def _is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and name != "user"


def _told(agent: object) -> str:
    made: Callable[..., object] | type = agent if callable(agent) else type(agent)
    return str(getattr(made, "__qualname__", made))
