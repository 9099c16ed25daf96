"""People chat with a durable agent in agent-chat-ui: memory, a killed agent, a question, all in a real browser."""

import os
import re
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.chat_ui.conftest import Chat
from tests.support.dev_process import DevProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.system("node", "npm", "chromium"), pytest.mark.timeout(300)]

PICTURE = os.environ.get("CHAT_PICTURE", "")
"""Where to keep a picture of the page, for the documentation."""


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    try:
        yield page
    finally:
        page.close()


def test_a_conversation_is_there_again_after_the_page_was_closed(
    page: Page, app_url: str, served: DevProcess, browser: Browser
) -> None:
    chat = Chat(page, app_url, served.url, "chat")
    chat.say("good morning")
    chat.shows("answer number 1")
    chat.say("and again")
    chat.shows("answer number 2")
    assert not chat.errors
    address = page.url
    assert "threadId=" in address

    later = browser.new_page()
    later.goto(address)
    for text in ("good morning", "answer number 1", "and again", "answer number 2"):
        later.get_by_text(text).first.wait_for(timeout=30_000)
    later.close()


def test_a_person_notices_nothing_of_an_agent_that_is_killed(
    page: Page, app_url: str, served: DevProcess, tmp_path: Path
) -> None:
    chat, place = Chat(page, app_url, served.url, "chat"), tmp_path / "pid"
    chat.say(f"hold {place}")
    until(lambda: place.exists() and place.read_text().endswith("\n"), seconds=30)
    os.kill(int(place.read_text()), signal.SIGKILL)

    chat.shows("answer number 1", 60)
    assert page.get_by_text("An error occurred").count() == 0
    assert not chat.errors


def test_a_question_is_answered_with_the_buttons_of_the_page(page: Page, app_url: str, served: DevProcess) -> None:
    chat = Chat(page, app_url, served.url, "asking")
    chat.say("send it")
    chat.shows("ada@example.com")
    if PICTURE:
        page.mouse.wheel(0, -2000)
        page.screenshot(path=PICTURE)

    page.get_by_role("button", name=re.compile("^accept$", re.IGNORECASE)).click()
    chat.shows("the person said: accept")
    assert not chat.errors


def test_the_list_at_the_side_leads_back_to_a_thread(page: Page, app_url: str, served: DevProcess) -> None:
    chat = Chat(page, app_url, served.url, "chat")
    chat.say("remember the blue door")
    chat.shows("answer number 1")

    page.goto(f"{page.url.partition('&threadId')[0]}&chatHistoryOpen=true")
    page.get_by_role("button", name="remember the blue door").click(timeout=30_000)
    chat.shows("answer number 1")
    assert not chat.errors
