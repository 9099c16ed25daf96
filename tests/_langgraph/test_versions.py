"""Versions grow as text, however they began, and two branches never make the same one."""

from hypothesis import given
from hypothesis import strategies as st

from agentvisor._langgraph.versions import next_version


def test_versions_grow_as_text() -> None:
    version, seen = next_version(None), list[str]()
    for _ in range(2000):
        seen.append(str(version))
        version = next_version(version)
    assert seen == sorted(seen)
    assert len(set(seen)) == 2000
    assert seen[0].startswith("00000001.")


@given(st.integers(0, 10**31), st.floats(0, 1))
def test_a_thread_of_langgraphs_own_savers_goes_on(count: int, chance: float) -> None:
    current = f"{count:032}.{chance:016}"
    after = next_version(current)
    assert isinstance(after, str)
    assert after > current
    assert int(after.partition(".")[0]) == count + 1


def test_numbers_stay_numbers() -> None:
    assert next_version(7) == 8
    assert next_version(1.0) == 2.0


def test_two_branches_make_different_versions() -> None:
    assert len({next_version("00000007.ab") for _ in range(100)}) == 100
