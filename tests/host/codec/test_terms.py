"""Terms of Temporal's index: hashed with a key that stays, plain, or none."""

import pytest
from tests.support.encryption import encryption, key

from agentvisor.core.errors import InvalidInput
from agentvisor.host.codec.client import terms_of
from agentvisor.host.codec.terms import SearchTerms
from agentvisor.host.config_encryption import EncryptionConfig


def test_without_keys_they_stand_there_as_they_are() -> None:
    terms = terms_of(EncryptionConfig())
    assert terms.written("AgentVisorMetadata", ["color=red"]) == ["color=red"]
    assert terms.asked("AgentVisorMetadata", "color=red") == "AgentVisorMetadata = 'color=red'"


def test_hashed_terms_are_found_whatever_key_encrypts_and_tell_nothing() -> None:
    before, after = terms_of(encryption("one")), terms_of(encryption("two", "one"))
    (hashed,) = before.written("AgentVisorMetadata", ["color=red"])
    assert hashed == after.written("AgentVisorMetadata", ["color=red"])[0]
    assert "red" not in hashed
    assert hashed != before.written("AgentVisorOwner", ["color=red"])[0]
    assert before.asked("AgentVisorMetadata", "color=red") == f"AgentVisorMetadata = '{hashed}'"
    other = terms_of(encryption("one", index_key=key("another index")))
    assert hashed != other.written("AgentVisorMetadata", ["color=red"])[0]


def test_while_threads_are_taken_along_a_search_finds_both() -> None:
    asked = terms_of(encryption("one", required=False)).asked("AgentVisorOwner", "anna")
    assert asked.endswith(" OR AgentVisorOwner = 'anna')")


def test_a_host_that_only_decrypts_yet_writes_plain_terms_and_finds_what_the_others_hashed() -> None:
    terms = terms_of(encryption("one", required=False, encrypts=False))
    assert terms.written("AgentVisorOwner", ["anna"]) == ["anna"]
    assert terms.asked("AgentVisorOwner", "anna") == terms_of(encryption("one", required=False)).asked(
        "AgentVisorOwner", "anna"
    )
    off = terms_of(encryption("one", required=False, encrypts=False, search="off", index_key=None))
    assert off.written("AgentVisorOwner", ["anna"]) == ["anna"]


def test_off_writes_none_and_refuses_to_search() -> None:
    terms = terms_of(encryption("one", search="off", index_key=None))
    assert terms.written("AgentVisorMetadata", ["color=red"]) == []
    with pytest.raises(InvalidInput, match=r"encryption.search is off"):
        terms.asked("AgentVisorMetadata", "color=red")
    assert isinstance(terms, SearchTerms)
