"""Encrypted threads in Temporal's UI, in a real browser: what it can send to our codec endpoint, and what it shows.

The key is typed as a browser asks for it: there is no other way for the UI of `agentvisor dev` to send one
(docs/encryption.md). A URL with a name and a password is the same to Chromium, which keeps them as if they were typed.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect
from tests.support.dev_process import DevProcess
from tests.support.encryption import settings
from tests.support.waiting_sync import until
from tests.temporal_ui.conftest import HERE, Served

pytestmark = [pytest.mark.flow, pytest.mark.system("chromium"), pytest.mark.timeout(180)]

PICTURES = os.environ.get("TEMPORAL_UI_PICTURES", "")
KEY = "the key of Temporal's UI"
QUESTION = "Refund order 4711?"
ENCRYPTED, PLAIN = "binary/agentvisor-encrypted", "binary/plain"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """A host that encrypts, and a thread that waits for an answer."""
    folder = tmp_path_factory.mktemp("sealed")
    (folder / "agents.py").write_text((HERE / "agents.py").read_text())
    dev = DevProcess(folder, "--no-reload")
    origin = f"http://localhost:{dev.ui_port}"
    configured = {
        "agents": {"desk": {"entrypoint": "./agents.py:desk", "framework": "function"}},
        "encryption": settings("2026-11", codec_key=KEY, codec_origins=[origin]),
    }
    (folder / "agentvisor.yaml").write_text(json.dumps(configured))
    dev.start()
    try:
        served = Served(dev)
        # Of one site with the host, as `localhost` and `127.0.0.1` are not.
        served.ui = origin
        served.run("order-7", "desk", {"question": QUESTION})
        yield served
    finally:
        dev.end()


@pytest.fixture
def visitor(browser: Browser) -> Generator[BrowserContext]:
    """A browser of somebody's own: nothing is kept in it."""
    context = browser.new_context(viewport={"width": 1400, "height": 1260})
    try:
        yield context
    finally:
        context.close()


def set_codec(page: Page, served: Served, endpoint: str, *, credentials: bool) -> None:
    """As a person does it, in the UI's own dialog."""
    page.goto(f"{served.ui}/namespaces/default/workflows/order-7")
    page.locator("[data-testid^=data-encoder-status]").first.click()
    page.get_by_test_id("use-local-endpoint-input").check(force=True)
    page.locator("#data-encoder-endpoint-input").fill(endpoint)
    page.get_by_test_id("data-encoder-include-credentials").set_checked(credentials, force=True)
    page.get_by_role("button", name="Apply", exact=True).click()
    page.locator("#data-encoder-endpoint-input").wait_for(state="hidden")


def give_key(page: Page, served: Served, key: str) -> int:
    answer = page.goto(f"http://ui:{quote(key, safe='')}@localhost:{served.dev.port}/codec")
    assert answer is not None
    return answer.status


def history(page: Page, served: Served) -> str:
    """What the UI shows of the thread's beginning: its first event, opened."""
    page.goto(f"{served.ui}/namespaces/default/workflows/order-7/history")
    page.get_by_text("Workflow Execution Started").first.click()
    page.get_by_text("binary/").first.wait_for()
    return page.locator("main, #content").first.inner_text()


def test_without_a_codec_endpoint_the_ui_shows_ciphertext(visitor: BrowserContext, sealed: Served) -> None:
    page = visitor.new_page()
    print(history(page, sealed))
    assert 0
