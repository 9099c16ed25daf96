"""The runner contract's agent as a plain function (test_runner_contract.py says what it has to do)."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import agentvisor
from agents import contract_steps as steps
from agentvisor import checkpoint


def agent(given: dict[str, Any]) -> Generator[Any, None, dict[str, str]]:
    """Remembers what was said by itself: a plain function has no state but what it saves."""
    said = given["say"]
    heard = [*(checkpoint.load("") or {"heard": []})["heard"]]  # type: ignore[index, call-overload]
    steps.begun()
    if said == "fail":
        steps.fail()
    if said == "keep":
        checkpoint.save("conversation", {"heard": [{"what": steps.UNKEEPABLE}]})
    if said == "wait":
        steps.wait()
    reply = ""
    if said == "ask":
        reply = f"heard {agentvisor.interrupt('Which?')}"
    if said == "ask two":
        reply = _two()
    if said == "die":
        if "first" not in heard:
            steps.first()
            heard.append("first")
            checkpoint.save("conversation", {"heard": heard})
        reply = steps.second()
    if said == "stream":
        for word in steps.WORDS:
            yield {"word": word}
    heard = [*(one for one in heard if one != "first"), said]
    checkpoint.save("conversation", {"heard": heard})
    return {"reply": reply or f"{len(heard)}: {said}"}


def _two() -> str:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(agentvisor.interrupt, f"{side}?") for side in ("left", "right")]
    left, right = (one.result() for one in asked)
    return f"heard left {left}, right {right}"
