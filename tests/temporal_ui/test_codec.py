"""Temporal's UI of a host that encrypts: who has given the codec's key to their browser reads, and nobody else."""

import json
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.support.dev_process import DevProcess
from tests.support.encryption import settings
from tests.temporal_ui.conftest import HERE, Served

pytestmark = [pytest.mark.flow, pytest.mark.system("chromium"), pytest.mark.timeout(180)]

KEY = "codec-key-of-the-operators"
QUESTION = "Refund order 7?"
SUMMARY = "desk run"
"""How the summary of an attempt begins."""


@pytest.fixture(scope="module")
def encrypting(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("encrypting")
    (folder / "agents.py").write_text((HERE / "agents.py").read_text())
    dev = DevProcess(folder, "--no-reload")
    agents = {"desk": {"entrypoint": "./agents.py:desk", "framework": "function"}}
    encryption = settings("2026-11", codec_key=KEY, codec_origins=[f"http://localhost:{dev.ui_port}"])
    (folder / "agentvisor.yaml").write_text(json.dumps({"agents": agents, "encryption": encryption}))
    try:
        served = Served(dev.start())
        served.run("order-7", "desk", {"question": QUESTION})
        yield served
    finally:
        dev.end()


@pytest.fixture
def person(browser: Browser) -> Generator[BrowserContext]:
    """A browser that knows nothing yet."""
    context = browser.new_context(viewport={"width": 1400, "height": 1260})
    try:
        yield context
    finally:
        context.close()


def codec(served: Served) -> str:
    return f"http://localhost:{served.dev.port}/codec"


def sign_in(person: BrowserContext, served: Served) -> None:
    page = person.new_page()
    page.goto(codec(served).replace("//", f"//ui:{KEY}@"))
    expect(page.get_by_text("This browser may decrypt payloads now")).to_be_visible()
    page.close()


def use_codec(page: Page, served: Served) -> None:
    """What a person does in the dialog of Temporal's UI, and then loads the page anew."""
    page.get_by_test_id("data-encoder-status").first.click()
    page.get_by_text("Use my browser setting and ignore").click()
    page.locator("#data-encoder-endpoint-input").fill(codec(served))
    page.get_by_text("Include cross-origin credentials").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#data-encoder-endpoint-input")).to_be_hidden()
    with page.expect_request(lambda asked: asked.url.startswith(f"{codec(served)}/decode")):
        page.reload()


def thread_page(person: BrowserContext, served: Served, host: str = "localhost") -> Page:
    page = person.new_page()
    page.goto(f"http://{host}:{served.dev.ui_port}/namespaces/default/workflows/order-7")
    expect(page.get_by_text("agentvisor.run").first).to_be_visible(timeout=30_000)
    return page


def test_who_has_the_key_reads_what_a_thread_says_of_itself(person: BrowserContext, encrypting: Served) -> None:
    sign_in(person, encrypting)
    page = thread_page(person, encrypting)
    assert SUMMARY not in page.inner_text("body")

    use_codec(page, encrypting)

    expect(page.get_by_text(SUMMARY).first).to_be_visible(timeout=30_000)
    page.get_by_text("User Metadata").click()
    frame = page.frame_locator("iframe").first
    expect(frame.get_by_text(QUESTION)).to_be_visible(timeout=30_000)


def test_without_the_key_nothing_is_read(person: BrowserContext, encrypting: Served) -> None:
    page = thread_page(person, encrypting)

    use_codec(page, encrypting)

    assert_nothing_is_read(page)


def test_a_page_of_another_origin_reads_nothing_although_the_browser_has_the_key(
    person: BrowserContext, encrypting: Served
) -> None:
    sign_in(person, encrypting)
    page = thread_page(person, encrypting, host="127.0.0.1")

    use_codec(page, encrypting)

    assert_nothing_is_read(page)


def assert_nothing_is_read(page: Page) -> None:
    page.goto(page.url.replace("/timeline", "/user-metadata"))
    expect(page.get_by_text("Current Details")).to_be_visible(timeout=30_000)
    page.wait_for_timeout(2_000)
    shown = page.inner_text("body") + "".join(frame.inner_text("body") for frame in page.frames)
    assert SUMMARY not in shown
    assert QUESTION not in shown
