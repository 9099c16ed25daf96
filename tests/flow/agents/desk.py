"""An agent of a framework that keeps its interrupts in a state of its own, and loses them on new input (as Strands').

Its state is a file of the thread's, since what a real framework's runner would store is not of interest here.
"""

import json
import os
import signal
from typing import Any

from agents import signs
from agents.effects import effect
from agentvisor.client.socketpair import own_channel
from agentvisor.client.waiting import Waiting, abandons, answers_of, report


def run(given: Any, context: Any) -> Any:
    """Ask what the input says, {"ask": {id: {fields of Waiting}}, "takes_input": bool}, and take what is answered."""
    channel, file = own_channel(), signs.sign("desk")
    task = channel.task
    state: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"open": {}, "answers": {}}
    if abandons(task):
        effect("forgot")
        state = {"open": {}, "answers": {}}
        report(channel, [], takes_input=True)
    answers = answers_of(task)
    for id_, answer in answers.items():
        effect(f"took {id_}: {json.dumps(answer)}")
        state["answers"][id_] = answer
        state["open"].pop(id_, None)
    if isinstance(given, dict):
        state = {"open": given["ask"], "answers": {}, "takes_input": given.get("takes_input", False)}
    if signs.read("die") == "before report":
        signs.sign("die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if signs.read("hold"):
        signs.sign("hold").unlink()
        effect("held")
        signs.wait_for("go on")
    waiting = [Waiting(id_, **{"value": f"{id_}?", **fields}) for id_, fields in state["open"].items()]
    report(channel, waiting, takes_input=state["takes_input"])
    effect(f"reported {len(waiting)}")
    if signs.read("linger"):
        signs.wait_for("leave")
    file.write_text(json.dumps(state))
    if signs.read("die") == "after report":
        signs.sign("die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"__interrupt__": [one.id for one in waiting]} if waiting else {"answers": state["answers"]}
