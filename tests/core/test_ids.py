"""One rule for thread ids, at every door."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import run_id, thread_id

ALLOWED = "ABCXYZabcxyz0189._:-"


@given(st.text(ALLOWED, min_size=1, max_size=255).filter(lambda text: text not in (".", "..")))
def test_every_allowed_id_is_taken_as_it_is(text: str) -> None:
    assert thread_id(text) == run_id(text) == text


@pytest.mark.parametrize("text", ["", "a" * 256, "a/b", "a b", "ä", "a\n", "\na", "a\0", "٣", ".", ".."])
def test_every_other_id_is_refused_and_the_message_says_the_rule(text: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 255 characters") as refused:
        thread_id(text)
    assert len(refused.value.message) < 300
    with pytest.raises(InvalidInput):
        run_id(text)
