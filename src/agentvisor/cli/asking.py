"""A person at the terminal is shown a question of an agent's, and asked for the answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer

from agentvisor.cli.facts import fields, text
from agentvisor.cli.show import as_json, cell
from agentvisor.host.render_typed import Json

_YES = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def choose(waiting: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """Of several the one that is to be answered now."""
    for number, one in enumerate(waiting, 1):
        _show(f"{number}  {text(one, 'id')}  {text(one, 'agent')}  {as_json(one.get('value'))}")
    while True:
        said = typer.prompt(f"Which one? 1 to {len(waiting)}", err=True)
        if said.isdecimal() and 1 <= int(said) <= len(waiting):
            return waiting[int(said) - 1]


def asked(interrupt: dict[str, Json]) -> Json:
    """The answer: JSON, or a text as it is typed where that is no JSON; asked for again where it cannot be one."""
    _show(f"{text(interrupt, 'agent')} asks: {_question(interrupt.get('value'))}")
    schema = fields(interrupt.get("schema"))
    if schema:
        _show(f"an answer is: {as_json(schema)}")
    if interrupt.get("deadline"):
        default = interrupt.get("default_answer")
        then = "it is given up" if interrupt.get("on_deadline") == "cancel" else f"the answer is {as_json(default)}"
        _show(f"until {text(interrupt, 'deadline')}; then {then}")
    while True:
        said: str = typer.prompt("Answer", err=True)
        try:
            answer = answer_of(said, schema)
        except ValueError as error:
            _show(str(error))
            continue
        _show(f"answering {as_json(answer)}")
        return answer


def answer_of(said: str, schema: dict[str, Json]) -> Json:
    """What was typed, as the schema wants it. `ValueError` says what it wants."""
    from agentvisor.host.http.json import decode  # it loads FastAPI, and no Tab shall wait for that

    said = said.strip()
    kind, choices = schema.get("type"), schema.get("enum")
    if isinstance(choices, list):
        for one in choices:
            if said in (one, as_json(one)):
                return one
        raise ValueError(f"one of: {', '.join(map(as_json, choices))}")
    if kind == "boolean":
        if said.lower() not in _YES:
            raise ValueError("yes or no")
        return _YES[said.lower()]
    if kind == "string":
        return _text(said)
    try:
        value = decode(said.encode("utf-8", "surrogateescape"), "the answer")
    except ValueError as error:
        if kind in ("object", "array", "number", "integer", "null") or said[:1] in ("{", "["):
            raise ValueError(f"{error}; type {kind or 'JSON'}") from error
        return said
    if kind in ("number", "integer") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError("a number")
    return value


def _text(said: str) -> str:
    try:
        value = json.loads(said)
    except ValueError:
        return said
    return value if isinstance(value, str) else said


def _question(value: Json) -> str:
    return cell(value) if isinstance(value, str) else as_json(value)


def _show(line: str) -> None:
    print(line, file=sys.stderr)
