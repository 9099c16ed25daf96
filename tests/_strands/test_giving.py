"""What a run's caller gives a Strands agent."""

import base64

import pytest

from agentvisor._strands.giving import prompt_of
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

PIXEL = b"\x89PNG\x00"


def image(data: str) -> Json:
    return {"image": {"format": "png", "source": {"bytes": data}}}


@pytest.mark.parametrize("in_message", [False, True])
def test_the_bytes_of_a_source_are_base64(*, in_message: bool) -> None:
    block = image(base64.b64encode(PIXEL).decode())
    given: Json = {"messages": [{"role": "user", "content": [block]}]} if in_message else [block]
    made = prompt_of(given, for_agent=False)
    assert made == [{"image": {"format": "png", "source": {"bytes": PIXEL}}}]


@pytest.mark.parametrize("in_message", [False, True])
def test_what_is_no_base64_is_refused(*, in_message: bool) -> None:
    given: Json = {"messages": [{"role": "user", "content": [image("!!!")]}]} if in_message else [image("!!!")]
    with pytest.raises(InvalidInput, match="not base64"):
        prompt_of(given, for_agent=True)
