"""A checkpoint waits for the writes before it to be sent, and for no others."""

import threading

import pytest

from agentvisor.client.write_order import WriteOrder


def test_it_waits_for_writes_that_were_begun_before() -> None:
    order, passed = WriteOrder(), threading.Event()
    sent, begun = threading.Event(), threading.Event()

    def write() -> None:
        with order.sending():
            begun.set()
            sent.wait()

    def put() -> None:
        order.wait()
        passed.set()

    writer, putter = threading.Thread(target=write), threading.Thread(target=put)
    writer.start()
    assert begun.wait(10)
    putter.start()
    assert not passed.wait(0.05)
    sent.set()
    assert passed.wait(10)
    writer.join()
    putter.join()


def test_it_does_not_wait_for_writes_that_were_begun_later() -> None:
    order, passed, release = WriteOrder(), threading.Event(), threading.Event()
    waiting = threading.Event()

    def put() -> None:
        waiting.set()
        order.wait()
        passed.set()

    with order.sending():
        putter = threading.Thread(target=put)
        putter.start()
        assert waiting.wait(10)
        assert not passed.wait(0.05)
        later_begun = threading.Event()

        def later() -> None:
            with order.sending():
                later_begun.set()
                release.wait()

        writer = threading.Thread(target=later)
        writer.start()
        assert later_begun.wait(10)
    assert passed.wait(10)
    release.set()
    writer.join()
    putter.join()


def test_a_write_that_fails_holds_nothing_up() -> None:
    order = WriteOrder()

    def fail() -> None:
        with order.sending():
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    order.wait()
