"""Every error of the tree crosses the wire as itself."""

import pytest

from agentvisor.core.errors import ERRORS, AgentVisorError, Internal
from agentvisor.protocol.errors import from_error, to_error
from agentvisor.protocol.v1 import store_pb2


def everything(error: type[AgentVisorError]) -> set[type[AgentVisorError]]:
    return {error}.union(*(everything(child) for child in error.__subclasses__()))


def test_every_class_has_its_own_code_and_stands_in_the_table() -> None:
    ours = {error for error in everything(AgentVisorError) if error.__module__ == "agentvisor.core.errors"}
    assert ours - {AgentVisorError} == set(ERRORS.values())
    assert all(error.code == code for code, error in ERRORS.items())


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_an_error_comes_back_as_itself(code: str) -> None:
    error = ERRORS[code]("what happened, and \x00 what to do", channel="messages")
    back = from_error(to_error(error))
    assert type(back) is type(error)
    assert (str(back), back.message, back.details) == (str(error), error.message, error.details)


def test_a_code_of_a_newer_version_is_an_internal_error_with_its_message() -> None:
    back = from_error(store_pb2.Error(code="from_the_future", message="text", details={"a": "b"}))
    assert type(back) is Internal
    assert (back.message, back.details) == ("text", {"a": "b"})
