"""Objects of external storage: any part of one is read as it was written, or not at all."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentvisor.core.errors import Corrupt, Sealed
from agentvisor.host.codec.keyring import Key, Keyring
from agentvisor.host.codec.objects import HEAD, PIECE, ObjectCipher, span, stored_size

KEY = Key("k", b"k" * 32)
CIPHER = ObjectCipher(Keyring([KEY]), "default")
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 5]
PATH = "thread/one/value.mark.1.encrypted"


def read(
    stored: bytes, start: int, length: int, size: int, *, path: str = PATH, cipher: ObjectCipher = CIPHER
) -> bytes:
    part = span(start, length, size)
    pieces = stored[part.start : part.start + part.length]
    skipped = start - part.first * PIECE
    return cipher.opened(path, stored[:HEAD], pieces, part.first, size)[skipped : skipped + length]


@settings(max_examples=60)
@given(st.sampled_from(SIZES), st.data())
def test_any_part_is_what_was_written(size: int, data: st.DataObject) -> None:
    plain = os.urandom(size)
    stored = CIPHER.sealed(PATH, plain)
    assert len(stored) == stored_size(size)
    start = data.draw(st.integers(0, size))
    length = data.draw(st.integers(0, size - start))
    if length or size == 0:
        assert read(stored, start, length, size) == plain[start : start + length]


@pytest.mark.parametrize("size", SIZES)
def test_damage_is_noticed_wherever_it_is(size: int) -> None:
    stored = CIPHER.sealed(PATH, bytes(size))
    for at in {0, 4, 50, HEAD, len(stored) - 1}:
        bad = bytearray(stored)
        bad[at] ^= 1
        with pytest.raises((Corrupt, Sealed)):
            read(bytes(bad), 0, size, size)


def test_pieces_cannot_be_cut_off_left_out_or_moved() -> None:
    size = 2 * PIECE + 10
    stored = CIPHER.sealed(PATH, os.urandom(size))
    first, second, third = (stored[span(at * PIECE, 1, size).start :][: PIECE + 16] for at in range(3))
    head = stored[:HEAD]
    for pieces, says in ((second + first + third, size), (first + second, 2 * PIECE), (first + third, PIECE + 10)):
        with pytest.raises(Corrupt, match="does not decrypt"):
            read(head + pieces, 0, says, says)


def test_an_object_is_of_its_path_and_namespace_alone() -> None:
    stored = CIPHER.sealed(PATH, b"value")
    with pytest.raises(Corrupt, match=r"other.*was moved here"):
        read(stored, 0, 5, 5, path="thread/other")
    with pytest.raises(Corrupt):
        read(stored, 0, 5, 5, cipher=ObjectCipher(Keyring([KEY]), "another"))


def test_a_missing_key_is_named() -> None:
    stored = CIPHER.sealed(PATH, b"value")
    with pytest.raises(Sealed, match="key 'k', which this host does not have"):
        read(stored, 0, 5, 5, cipher=ObjectCipher(Keyring(), "default"))
