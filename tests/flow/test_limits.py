"""Limits as an agent meets them without external storage: an exception from the saver's call, within a second."""

from collections.abc import Generator
from typing import Any

import httpx
import pytest
from tests.flow.conftest import Project, called, client_of
from tests.support.host_process import HostProcess

pytestmark = pytest.mark.flow

SIZES = [1_400_000, 1_900_000, 2_100_000, 5_000_000]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[HostProcess]:
    project = Project(
        tmp_path_factory.mktemp("limits"), temporal, "zygote", {"calls": "calls.py:call", "large": "limits.py:graph"}
    )
    host = project.host({"AGENTVISOR_STORAGE_MAX_NAMESPACES": "3"})
    try:
        yield host
    finally:
        host.stop()


def asked(host: HostProcess, what: str, **arguments: object) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = called(client_of(host), f"limits:{what}", **arguments)[1]
    assert all(one["seconds"] < 10 for one in answers), f"it was tried again: {answers}"
    return answers


def is_told(answer: dict[str, Any], error: str, *parts: str) -> None:
    """The error names what it is about, how large that is, the limit, and a way out."""
    assert answer["error"] == error, answer
    assert all(part in answer["message"] for part in parts), answer
    assert int(answer["size"]) > int(answer["limit"]), answer
    assert answer["limit"] in answer["message"]


def test_a_value_that_is_too_large_is_refused_by_its_channel(host: HostProcess) -> None:
    fits, *refused = asked(host, "values", sizes=SIZES)
    assert fits["error"] == ""
    for answer in refused:
        is_told(answer, "ValueTooLarge", "channel 'big'", "storage.max_inline_value", "reference", "storage.url")
        assert answer["channel"] == "big"


def test_values_that_do_not_fit_together_are_refused_and_the_thread_goes_on(host: HostProcess) -> None:
    refused, after = asked(host, "together", sizes=[900_000, 900_000, 900_000])
    is_told(refused, "StateTooLarge", "'part_0' (900", "storage.max_state", "reference", "storage.url")
    assert after["error"] == ""


def test_an_interrupt_or_answer_that_is_too_large_is_refused(host: HostProcess) -> None:
    fits, *refused = asked(host, "writes", channel="__interrupt__", sizes=SIZES)
    assert fits["error"] == ""
    for answer in refused:
        is_told(answer, "ValueTooLarge", "'__interrupt__'", "storage.max_inline_value", "reference")


def test_writes_to_delta_channels_over_the_limit_are_refused(host: HostProcess) -> None:
    small, *refused = asked(host, "writes", channel="items", sizes=[10_000, 1_200_000, *SIZES[1:]])
    assert small["error"] == ""
    is_told(refused[0], "ValueTooLarge", "'items'", "storage.max_pending_write_bytes", "reference", "storage.url")
    for answer in refused[1:]:
        is_told(answer, "ValueTooLarge", "'items'", "storage.max_inline_value", "reference")


def test_regular_writes_over_the_limit_are_dropped_and_counted(host: HostProcess) -> None:
    def dropped() -> float:
        lines = httpx.get(f"{host.url}/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("agentvisor_dropped_writes_total"))

    before = dropped()
    assert [one["error"] for one in asked(host, "writes", channel="big", sizes=[10_000, 1_200_000, *SIZES])] == [""] * 6
    assert dropped() == before + 5
    assert "pending_writes_dropped" in host.log.read_text()


def test_records_have_limits_of_their_own(host: HostProcess) -> None:
    metadata, channels, compressed, *namespaces = asked(host, "records")
    is_told(metadata, "ValueTooLarge", "metadata", "storage.max_metadata", "keep less")
    is_told(channels, "ValueTooLarge", "without its values", "storage.max_record", "fewer channels")
    assert compressed["error"] == ""
    assert [one["error"] for one in namespaces] == ["", "", "StateTooLarge", "StateTooLarge", "StateTooLarge"]
    assert "storage.max_namespaces" in namespaces[-1]["message"]


def test_a_run_whose_state_is_too_large_ends_with_that_error_and_can_be_read(host: HostProcess) -> None:
    client = client_of(host)
    thread = client.threads.create()["thread_id"]
    with pytest.raises(Exception, match=r"ValueTooLarge.*'document'.*storage\.max_inline_value"):
        client.runs.wait(thread, "large", input={})
    assert client.threads.get(thread)["status"] == "error"
    assert client.threads.get_state(thread)["next"] == ["load"]
