"""Outputs of tasks as JSON and back; what the agent said to its model on the way is not kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from crewai import Task, TaskOutput
from pydantic import BaseModel, ValidationError

from agentvisor._crewai.plan import Identity
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json


def encode(output: TaskOutput, task: Task, identity: Identity | None) -> Json:
    """An output as it is kept; the typed forms as their models dump them."""
    return {
        "identity": identity.to_json() if identity else None,
        "name": output.name,
        "description": output.description,
        "expected_output": output.expected_output,
        "raw": output.raw,
        "pydantic": _dumped(output.pydantic),
        "json_dict": _json_dict(output, task),
        "agent": output.agent,
        "output_format": output.output_format.value,
        "tool_failures": [_dumped(one) for one in output.tool_failures],
    }


def decode(kept: Json, task: Task) -> TaskOutput:
    """The output again, with the models that the live task declares; `InvalidInput` where it does not fit them."""
    fields = dict(cast("Mapping[str, Json]", kept))
    del fields["identity"]
    typed, plain = fields.pop("pydantic"), fields.pop("json_dict")
    try:
        model = task.output_pydantic.model_validate(typed) if typed is not None and task.output_pydantic else None
        output = TaskOutput.model_validate({**fields, "json_dict": _plain_again(plain, task)})
    except ValidationError as error:
        raise InvalidInput(
            f"the kept output of task {task.description[:80]!r} does not fit its output model any more: give the "
            f"thread a run with an input to begin anew ({error.error_count()} errors, the first: "
            f"{error.errors(include_url=False)[0]['msg']})"
        ) from error
    output.pydantic = model
    return output


def _dumped(model: BaseModel | None) -> Json:
    return None if model is None else cast("Json", model.model_dump(mode="json"))


def _json_dict(output: TaskOutput, task: Task) -> Json:
    """CrewAI dumps a model into it as Python values, dates included."""
    if output.json_dict is None or task.output_json is None:
        return cast("Json", output.json_dict)
    return _dumped(task.output_json.model_validate(output.json_dict))


def _plain_again(kept: Json, task: Task) -> object:
    if kept is None or task.output_json is None:
        return kept
    return task.output_json.model_validate(kept).model_dump()
