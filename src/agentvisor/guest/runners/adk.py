"""Runs an agent of Google ADK: its session is the thread's, and a restarted attempt goes on where the session ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import cast

from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.runners import Runner

from agentvisor import checkpoint, thread_state
from agentvisor._adk.stored_session import SessionKey, StoredSession
from agentvisor._adk.thread_store import ThreadStore
from agentvisor.client.conversation import Conversation, Paused, set_conversation
from agentvisor.client.socketpair import Channel
from agentvisor.client.waiting import abandons, answers_of, report
from agentvisor.core.errors import InvalidInput
from agentvisor.guest import plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.events import Events
from agentvisor.guest.runners import adk_json
from agentvisor.guest.runners.adk_app import app_of
from agentvisor.guest.runners.adk_finished import Finished
from agentvisor.guest.runners.adk_goes_on import GoesOn
from agentvisor.guest.runners.adk_invocation import Invocation, append, gives_up, invocation_of, keep
from agentvisor.guest.runners.adk_lost_requests import lost_requests
from agentvisor.guest.runners.adk_questions import open_questions
from agentvisor.guest.runners.adk_sessions import RunSessions
from agentvisor.guest.runners.adk_unfinished import CallsDone, Unfinished, unfinished_calls
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome

MODES = {"values", "updates", "messages", "custom", "tasks", "checkpoints", "debug", "tools", "content-blocks"}
"""What a caller may ask for. Of custom, tasks, checkpoints, debug, tools and content blocks ADK has nothing to tell."""

USER = "user"
"""Whose the session is, where the caller's configuration does not say (configurable.user_id)."""


def run_adk(
    agent: object,
    task: AgentTask,
    channel: Channel,
    cancellation: Cancellation,
    *,
    store: ThreadStore = thread_state,
    save: Callable[[str, object], Awaitable[object]] = checkpoint.asave,
) -> Outcome:
    """Run the agent on the thread's session; COMPLETED, or PAUSED where it waits for answers.

    `store` and `save` are where it keeps its session, and what people are shown of it.
    """
    unknown = [mode for mode in task.spec.stream_modes if mode not in MODES]
    if unknown:
        raise InvalidInput(f"stream mode {unknown[0]!r} is not known: use {', '.join(sorted(MODES))}")
    return cancellation.run(_Run(task, channel, store, save).run(agent))


SUMMARY = "adk"
"""The key of the saves that `GET /threads/{id}/state` shows: the session's state, and what was said last."""


class _Run:
    def __init__(
        self,
        task: AgentTask,
        channel: Channel,
        store: ThreadStore,
        save: Callable[[str, object], Awaitable[object]],
    ) -> None:
        self._task = task
        self._channel = channel
        self._events = Events(channel)
        self._modes = set(task.spec.stream_modes)
        self._sessions = RunSessions(task.run_id, store)
        self._save = save
        self._plugin = GoesOn(self._sessions)
        self._talk = Conversation(channel, task.run_id)

    async def run(self, agent: object) -> Outcome:
        set_conversation(self._talk)
        answers = await asyncio.to_thread(self._answers)
        app = await app_of(agent, self._task.spec.agent, self._plugin)
        key = await self._key(app.name)
        self._plugin.long_running = partial(self._sessions.add_started, key)
        self._plugin.finished = finished = Finished(self._sessions, key)
        await finished.read()
        self._sessions.has_stored = finished.forget
        async with Runner(app=app, session_service=self._sessions, auto_create_session=True) as runner:
            try:
                if answers and self._talk.waiting:
                    await keep(self._task, answers, self._sessions, key)
                await self._finish_calls(runner, key)
                seen = await self._sessions.seen(key)
                invocation = await invocation_of(self._task, answers, self._sessions, key, seen)
                drained = invocation is not None and await self._go_on(runner, key, invocation)
            except Paused:
                drained = False
            except BaseExceptionGroup:
                # Agents side by side are tasks of a group, which raises in a group what ended them.
                if not self._talk.is_paused:
                    raise
                drained = False
            finally:
                self._events.flush()
                await finished.settle()
        if drained:
            return Outcome(kind=Outcome.KIND_DRAINED)
        return await self._ended(key)

    def _answers(self) -> dict[str, Json]:
        """The answers to what ADK waits for; those to what a tool has asked by `agentvisor.interrupt` are taken in."""
        self._talk.begin(None, answers=False)
        given = answers_of(self._task)
        own = {id_: answer for id_, answer in given.items() if id_ in self._talk.waiting}
        if own:
            self._talk.begin(own, answers=True)
        return {id_: answer for id_, answer in given.items() if id_ not in own}

    async def _go_on(self, runner: Runner, key: SessionKey, invocation: Invocation) -> bool:
        try:
            return await self._drain(runner, key, invocation)
        except Exception as error:  # noqa: BLE001 (whatever an agent raises is its run's error)
            # What was answered is answered, though nothing came of it.
            await self._report(key, await self._sessions.seen(key))
            raise _cleared(error)  # noqa: B904 (it is the same one)

    async def _finish_calls(self, runner: Runner, key: SessionKey) -> None:
        """Make the calls again that an earlier process had not finished beside one that waits."""
        await self._ask_again(key)
        left: list[Unfinished] = []
        while True:
            stored = await self._sessions.seen(key)
            events = stored.events if stored else []
            if stored is None or gives_up(self._task, stored):
                return
            before, left = left, unfinished_calls(events, open_questions(events), await self._sessions.started(key))
            if not left or left == before:
                return
            self._sessions.only, self._plugin.only_calls = left, True
            try:
                await self._drain(runner, key, Invocation(id=left[0].event.invocation_id))
            except CallsDone:
                pass
            finally:
                self._sessions.only, self._plugin.only_calls = [], False

    async def _ask_again(self, key: SessionKey) -> None:
        """Store what an earlier process was about to ask."""
        stored = await self._sessions.seen(key)
        if stored is None or gives_up(self._task, stored):
            return
        await append(self._sessions, key, lost_requests(stored.events))

    async def _drain(self, runner: Runner, key: SessionKey, invocation: Invocation) -> bool:
        """Take all that the agent says; whether it was stopped for the run to go on elsewhere."""
        stored = await self._sessions.seen(key)
        self._sessions.goes_on = invocation.message is None
        self._plugin.stored = set(stored.event_ids) if stored and invocation.message is None else set()
        stream = runner.run_async(
            user_id=key.user,
            session_id=key.id,
            invocation_id=invocation.id,
            new_message=invocation.message,
            run_config=RunConfig.model_validate({"streaming_mode": "sse" if "messages" in self._modes else None}),
        )
        # To its end: ADK condenses the session behind the last event.
        async with aclosing(stream) as said:
            async for event in said:
                self._send(event)
                if self._channel.drain_asked and not event.partial:
                    return True
        return False

    def _send(self, event: Event) -> None:
        if not adk_json.says_something(event):
            return
        if "messages" in self._modes and (adk_json.text_of(event) or event.get_function_calls()):
            self._events.send("messages", (), adk_json.chunk(event))
        if "updates" in self._modes and not event.partial:
            self._events.send("updates", (), adk_json.update(event))

    async def _ended(self, key: SessionKey) -> Outcome:
        stored = await self._sessions.seen(key)
        events = stored.events if stored else []
        if stored is not None:
            await self._save(SUMMARY, adk_json.summary(await self._sessions.state(stored), events))
        if await self._report(key, stored) or self._talk.is_paused:
            return Outcome(kind=Outcome.KIND_PAUSED)
        came_to = adk_json.outcome_of(events, events[-1].invocation_id) if events else None
        return Outcome(kind=Outcome.KIND_COMPLETED, output=plain_json.encode(came_to, "output"))

    async def _report(self, key: SessionKey, stored: StoredSession | None) -> bool:
        """Tell what waits, unless it is nothing and nothing did; whether something waits."""
        questions = open_questions(stored.events if stored else [])
        kept = await self._sessions.kept_answers(key, questions)
        if not questions:
            await self._sessions.forget_settled(key)
        waiting = [one.waiting() for one in questions if one.id not in kept]
        if waiting or self._task.spec.answers or abandons(self._task):
            report(self._channel, waiting, takes_input=False)
        return bool(waiting)

    async def _key(self, app: str) -> SessionKey:
        """The thread's session: that of the user whom the caller names, if it names one."""
        config = cast("dict[str, dict[str, object]]", json.loads(self._task.spec.config or b"{}"))
        wanted = config.get("configurable", {}).get("user_id")
        if wanted is not None and not (isinstance(wanted, str) and wanted):
            raise InvalidInput("user_id is a text", field="config.configurable.user_id")
        thread = self._task.thread_id
        stored = await self._sessions.of_thread(app, thread)
        if stored is None:
            return SessionKey(app, wanted or USER, thread)
        if wanted not in (None, stored.key.user):
            raise InvalidInput(
                f"thread {thread} has a session of user {stored.key.user!r}, and the run is of {wanted!r}: "
                "use another thread",
                field="config.configurable.user_id",
            )
        return stored.key


def _cleared(error: Exception) -> Exception:
    """The user's error without the one that ADK wrapped it in on its way."""
    context = error.__context__
    if getattr(context, "error", None) is error:
        error.__context__ = None
    return error
