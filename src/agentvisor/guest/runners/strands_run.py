"""One run of a Strands agent, graph or swarm: what was stored is loaded, then it runs, and each step is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import cast

from strands import Agent
from strands.agent import AgentResult
from strands.multiagent.base import Status
from strands.types.exceptions import EventLoopException, SessionException, SnapshotException
from strands.types.session import decode_bytes_values

from agentvisor._strands import turns
from agentvisor._strands.asked import asked, open_interrupts, repeated
from agentvisor._strands.beginning import Beginning, Given, beginning
from agentvisor._strands.envelope import ENDED, UNDER_WAY, Owner, Phase, Saved, incompatible, read
from agentvisor._strands.foreground import run_in_foreground
from agentvisor._strands.giving import prompt_of
from agentvisor._strands.node_scope import scope_nodes
from agentvisor._strands.output import agent_outcome, orchestrator_outcome, output_of
from agentvisor._strands.parts import Subject, agents_of, load_agent, load_orchestrator, owner_of
from agentvisor._strands.saving import Saving, saving
from agentvisor._strands.tool_scope import ToolScope
from agentvisor._strands.tool_task import ToolTasks
from agentvisor._strands.turns import State
from agentvisor.core.errors import AgentVisorError, InvalidInput
from agentvisor.guest.runners.strands_order import Ended, Host, Order
from agentvisor.guest.runners.strands_result import Result, RunFailed, is_interrupted, raise_failure
from agentvisor.protocol.metadata import Json


class Run:
    """`await Run(...).run()`, once."""

    def __init__(self, subject: Subject, order: Order, host: Host) -> None:
        self._subject = subject
        self._order = order
        self._host = host
        self._owner: Owner = owner_of(subject)
        self._asks = False
        """Questions wait, as far as the host knows."""

    async def run(self) -> Ended:
        """Raises what the agent raises; `IncompatibleState` and `InvalidInput` before anything is changed."""
        order, owner = self._order, self._owner
        if nothing := [id_ for id_, answer in order.answers.items() if answer is None]:
            raise InvalidInput(f"question {nothing[0]}: null is no answer to Strands, which would ask again")
        prompt = None if order.input is None else prompt_of(order.input, for_agent=owner.kind == "agent")
        base, under_way = [read(await self._host.load(key), owner) for key in (ENDED, UNDER_WAY)]
        given = Given(order.run_id, order.input is not None, bool(order.answers), order.forgets)
        begun = beginning(owner, given, base, under_way)
        self._asks = order.forgets or (base is not None and base.state is not None and turns.waits(base.state))
        loads = begun.loads
        if begun.is_over and loads is not None:
            return self._told_again(loads)
        state = self._state(begun)
        if state is not None and loads is not None:
            if begun.gives == "answers" and loads is not under_way:
                self._check_answers(state)
            self._load(state)
            if begun.gives == "nothing" and loads is base and loads.phase is Phase.PAUSED:
                return self._told_again(loads)
        if begun.new_base is not None:
            await self._save(ENDED, begun.new_base)
        covers = under_way.run_id if under_way is not None else ""
        mark = Saved(owner, order.run_id, Phase.RUNNING, begun.took, begun.origin, covers)
        if loads is not None and loads.run_id == order.run_id:
            mark = replace(mark, state=loads.state, results=loads.results)
        if state is not None and begun.gives != "input" and (over := self._over(state)) is not None:
            return await self._finish(mark, state, over)
        return await self._live(mark, prompt if begun.gives == "input" else self._going_on(state))

    # --- before ------------------------------------------------------------------------------------------------------

    def _state(self, begun: Beginning) -> State | None:
        """What is loaded."""
        if begun.loads is None or begun.loads.state is None:
            return None
        if begun.gives == "input" or not isinstance(self._subject, Agent):
            return begun.loads.state
        return turns.with_results(begun.loads.state, begun.loads.results)

    def _check_answers(self, state: State) -> None:
        known = turns.known_answers(state, self._order.answers) if turns.waits(state) else []
        if len(known) < len(self._order.answers):
            # A process may have died between storing that they were answered and saying so.
            self._host.report(asked(open_interrupts(state), state) if turns.waits(state) else [])
            raise InvalidInput(
                f"of the answers to {', '.join(self._order.answers)}, {len(known)} are to questions that wait",
                field="command.resume",
            )

    def _load(self, state: State) -> None:
        try:
            if isinstance(self._subject, Agent):
                load_agent(self._subject, state)
            else:
                load_orchestrator(self._subject, state)
        except (
            SnapshotException,
            SessionException,
            KeyError,
            ValueError,
            TypeError,
            RuntimeError,
            AttributeError,
        ) as error:  # fmt: skip (Strands has no one error for it)
            raise incompatible(self._owner, f"Strands says {type(error).__name__}: {error}") from error

    def _over(self, state: State) -> State | None:
        """What it came to, where nothing is left to do from that state: its process ended at the last word."""
        if turns.waits(state):
            return None
        if isinstance(self._subject, Agent):
            last = turns.last_message(state)
            if not turns.is_last_word(last):
                return None
            if self._structured:
                # What the answer was to be made into was not stored: the model is asked again.
                self._subject.messages.pop()
                return None
            return agent_outcome(state, "end_turn")
        own = cast("State", state["state"])
        if own.get("next_nodes_to_execute") or own.get("status") != Status.EXECUTING.value:
            return None
        return orchestrator_outcome(state, Status.COMPLETED.value)

    @property
    def _structured(self) -> bool:
        return getattr(self._subject, "_default_structured_output_model", None) is not None

    def _going_on(self, state: State | None) -> object:
        """What Strands is given so that it goes on with what was begun."""
        if state is not None and turns.waits(state):
            return turns.known_answers(state, self._order.answers)
        if isinstance(self._subject, Agent) or state is None:
            return None
        return decode_bytes_values(cast("State", state["state"]).get("current_task"))

    def _told_again(self, saved: Saved) -> Ended:
        if saved.phase is Phase.FAILED:
            raise RunFailed(f"the run has failed before: {saved.outcome.get('error')}")
        if saved.phase is Phase.PAUSED and saved.state is not None:
            self._host.report(asked(open_interrupts(saved.state), saved.state))
            return Ended(output_of(saved.state, saved.outcome), paused=True)
        self._host.report([])
        return Ended(output_of(saved.state, saved.outcome), completed=True)

    # --- the run itself ----------------------------------------------------------------------------------------------

    async def _live(self, mark: Saved, prompt: object) -> Ended:
        subject = self._subject
        for agent in agents_of(subject):
            agent.hooks.add_hook(ToolTasks())
            run_in_foreground(agent)
        if isinstance(subject, Agent):
            subject.hooks.add_hook(ToolScope())
        else:
            scope_nodes(subject, mark.origin)
        saves = saving(subject, mark, self._save)
        try:
            result = await self._result(prompt)
            if result is None:
                return Ended()
            raise_failure(subject, result)
            return await self._keep(saves, result)
        except Exception as error:  # noqa: BLE001 (it is raised again)
            # What the user's tools, hooks or model have raised, without what Strands wraps around it.
            own = error.original_exception if isinstance(error, EventLoopException) else error
            with suppress(AgentVisorError):
                failed = replace(saves.latest, phase=Phase.FAILED, outcome={"error": f"{type(own).__name__}: {own}"})
                await self._save(UNDER_WAY, failed)
            raise own from own.__cause__

    async def _result(self, prompt: object) -> Result | None:
        """None: the host is leaving, and what was done so far is stored."""
        result: Result | None = None
        stream = cast("AsyncGenerator[dict[str, object]]", self._subject.stream_async(  # pyright: ignore[reportCallIssue]
            prompt, invocation_state=self._order.invocation  # pyright: ignore[reportArgumentType]
        ))  # fmt: skip
        async with aclosing(stream) as events:
            async for event in events:
                if "result" in event and not isinstance(event["result"], dict):
                    result = cast("Result", event["result"])
                    continue
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    # A graph waits with asyncio.wait_for, which in Python 3.11 may swallow it (python/cpython#86296).
                    raise asyncio.CancelledError
                self._host.show(event)
                if self._host.is_leaving() and self._is_between_steps(event):
                    return None
        if result is None:
            raise RunFailed("Strands has ended its stream without a result")
        return result

    def _is_between_steps(self, event: Mapping[str, object]) -> bool:
        """Whether what was done so far has just been stored, and nothing else is under way."""
        if isinstance(self._subject, Agent):
            return "message" in event and not turns.is_last_word(cast("State", event["message"]))
        return event.get("type") == "multiagent_handoff"

    async def _keep(self, saves: Saving, result: Result) -> Ended:
        state, latest = saves.state(), saves.latest
        if isinstance(result, AgentResult):
            structured = result.structured_output
            shown = cast("Json", structured.model_dump(mode="json")) if structured is not None else None
            outcome = agent_outcome(state, result.stop_reason, shown)
        else:
            outcome = orchestrator_outcome(state, result.status.value)
        if not is_interrupted(result):
            return await self._finish(latest, state, outcome)
        if shared := repeated(state):
            raise RunFailed(
                f"two calls that wait for an answer have the same id ({shared[0]}), so that one answer would count for "
                "both: the model, or what makes its tool-use ids, has to give each call an id of its own"
            )
        paused = replace(latest, phase=Phase.PAUSED, state=state, results={}, outcome=outcome)
        await self._save(ENDED, paused)
        self._host.report(asked(result.interrupts or [], state))
        return Ended(output_of(state, outcome), paused=True)

    async def _finish(self, mark: Saved, state: State, outcome: State) -> Ended:
        saved = replace(mark, phase=Phase.FINISHED, state=state, results={}, outcome=outcome)
        await self._save(ENDED, saved)
        return Ended(output_of(state, outcome), completed=True)

    async def _save(self, key: str, saved: Saved) -> None:
        await self._host.save(key, saved.to_json())
        state = saved.state
        is_new = key == ENDED or state is not None
        if self._asks and is_new and not (state is not None and turns.waits(state)):
            # They were answered, or given up: whatever becomes of this run, nobody can answer them again.
            self._asks = False
            self._host.report([])
