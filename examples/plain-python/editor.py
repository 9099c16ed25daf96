"""A plain agent with a model: it drafts, asks a person, and sends; whatever dies, it goes on where it was.

Without a key the model is a script; with ANTHROPIC_API_KEY it is a real one, MODEL names which.
"""

import os
from pathlib import Path
from typing import Any

import agentvisor
from agentvisor import checkpoint


def complete(prompt: str) -> str:
    if not os.environ.get("ANTHROPIC_API_KEY"):
        return f"A few words about {prompt.removeprefix('Write one sentence about ')}"
    from anthropic import Anthropic

    said = Anthropic().messages.create(
        model=os.environ.get("MODEL", "claude-sonnet-4-5"),
        max_tokens=200,
        messages=[{"role": "user", "content": prompt}],
    )
    return "".join(block.text for block in said.content if block.type == "text")


def edit(given: dict[str, Any]) -> dict[str, Any]:
    """The function runs from its start in every attempt and after every answer: what cost something is kept."""
    drafts = checkpoint.load() or {}
    for topic in given["topics"]:
        if topic not in drafts:
            drafts[topic] = complete(f"Write one sentence about {topic}.")
            checkpoint.save("drafts", drafts)
            agentvisor.progress({"drafted": topic})
    answer = agentvisor.interrupt({"send": drafts})
    if answer != "yes":
        return {"sent": False, "because": answer}
    return agentvisor.once(f"send:{','.join(given['topics'])}", lambda: send(drafts))


def send(drafts: dict[str, str]) -> dict[str, Any]:
    with Path("sent.txt").open("a") as sent:
        sent.writelines(f"{text}\n" for text in drafts.values())
    return {"sent": True, "by_attempt": agentvisor.current_run().attempt}
