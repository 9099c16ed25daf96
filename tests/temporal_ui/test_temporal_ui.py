"""Temporal's UI, in a real browser: a thread is found by its id, and its page says how it stands (S30)."""

import os
import re
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, FrameLocator, Page
from tests.support.waiting_sync import until
from tests.temporal_ui.conftest import Served

pytestmark = [pytest.mark.flow, pytest.mark.system("chromium"), pytest.mark.timeout(180)]

PICTURES = os.environ.get("TEMPORAL_UI_PICTURES", "")
"""Folder for pictures of the pages, for the documentation (make screenshots)."""
COLUMNS = ("AgentVisorStatus", "AgentVisorAgent", "AgentVisorOwner")


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    page = browser.new_page(viewport={"width": 1400, "height": 1260})
    try:
        yield page
    finally:
        page.close()


def keep(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / name))


def workflows(served: Served, query: str = "") -> str:
    return f"{served.ui}/namespaces/default/workflows" + (f"?query={quote(query)}" if query else "")


def details(page: Page, served: Served, thread_id: str) -> FrameLocator:
    """The page of the workflow that has the thread's id, open at what it says of itself."""
    page.goto(f"{workflows(served)}/{thread_id}")
    page.get_by_text("User Metadata").click()
    frame = page.frame_locator("iframe").first
    frame.get_by_text("with AgentVisor, not on this page").wait_for(timeout=30_000)
    return frame


def text_of(frame: FrameLocator) -> str:
    return " ".join(frame.locator("main").inner_text().split())


def test_a_thread_that_waits_is_found_by_its_id_and_its_page_says_what_for(page: Page, served: Served) -> None:
    order = {"question": "Refund order 7?", "died": str(served.folder / "died")}
    (asked,) = served.run("order-7", "desk", order)["__interrupt__"]
    page.goto(workflows(served, "WorkflowId = 'order-7'"))
    page.get_by_role("link", name="order-7", exact=True).first.wait_for()

    shown = text_of(details(page, served, "order-7"))

    assert shown.startswith("interrupted · agent desk"), shown
    for text in ("approval", asked["id"], "Refund order 7?", "deadline 2", "then its default answer is given"):
        assert text in shown
    assert re.search(r"attempt 1 · host \S+ · agent signal: the agent was killed by signal 9", shown), shown
    assert re.search(r"attempt 2 · host \S+ · paused", shown)
    assert "agentvisor threads show order-7" in shown
    keep(page, "temporal-ui-thread.png")


def test_the_head_checkpoint_of_a_graph_is_the_one_that_the_api_shows(page: Page, served: Served) -> None:
    served.run("order-9", "refunds", {"order": "9"})
    head = served.http.get("/threads/order-9/state").json()["checkpoint"]["checkpoint_id"]

    shown = text_of(details(page, served, "order-9"))

    for text in (head, "question of node ask", "next: ask", "order, reserved", "3 checkpoints in 1 namespace"):
        assert text in shown, shown
    assert "Refund order" not in shown, "a value of the graph's state"


def test_what_somebody_says_makes_neither_links_nor_pictures_nor_markup(page: Page, served: Served) -> None:
    bad = (
        '<img src=x onerror="document.title=1"> <b>B</b> [l](javascript:alert(1)) **s** `t` https://evil.example/ \n# H'
    )
    served.run("order-bad", "desk", {"question": bad})
    served.run("order-worse", "failing", {"says": bad})

    for thread_id in ("order-bad", "order-worse"):
        frame = details(page, served, thread_id)
        assert "[l](javascript:alert(1)) **s** `t` https://evil.example/" in text_of(frame)
        for markup in ("img", "b", "main a", "h1"):
            assert frame.locator(markup).count() == 0, (thread_id, markup)


def test_search_attributes_are_columns_and_filters(page: Page, served: Served) -> None:
    served.run("order-20", "refunds", {"order": "20"})
    served.run("order-30", "failing", {"says": "no such order"})
    page.goto(workflows(served))
    page.get_by_test_id("workflows-summary-table-configuration-button").click()
    for column in COLUMNS:
        page.get_by_test_id(f"orderable-list-item-{column}-add-button").click()
    for column in ("Run ID", "Type", "End"):
        page.get_by_test_id(f"orderable-list-item-{column}-remove-button").click()
    page.get_by_test_id("drawer-close-button").click()
    page.get_by_text("Configure Workflows Table").wait_for(state="hidden")
    headers = page.locator("[data-testid^=workflows-summary-table-header-cell]")
    until(lambda: set(COLUMNS) <= set(headers.all_inner_texts()))
    row = page.locator("tr", has_text="order-20")
    assert {"interrupted", "refunds"} <= set(row.inner_text().split())
    page.set_viewport_size({"width": 1400, "height": 640})
    keep(page, "temporal-ui-list.png")

    page.goto(workflows(served, "AgentVisorStatus = 'error' AND AgentVisorAgent = 'failing'"))
    page.get_by_role("link", name="order-30", exact=True).first.wait_for()
    assert page.get_by_role("link", name="order-20", exact=True).count() == 0


def test_a_shelf_says_what_is_kept_there_and_shows_no_items(page: Page, served: Served) -> None:
    item = {"namespace": ["users", "<b>ada</b>"], "key": "secret-key", "value": {"secret": "value"}}
    assert served.http.put("/store/items", json=item).status_code in (200, 204)
    page.goto(workflows(served, "WorkflowType = 'agentvisor.shelf'"))
    ids = page.locator("tbody a[href*=shelf]")
    ids.first.wait_for()

    shown: list[str] = []
    for address in {one.get_attribute("href") or "" for one in ids.all()}:
        page.goto(f"{served.ui}{address}")
        page.get_by_text("User Metadata").click()
        frame = page.frame_locator("iframe").first
        frame.get_by_text("Delete items with AgentVisor").wait_for(timeout=30_000)
        shown.append(text_of(frame))

    (items,) = [one for one in shown if one.startswith("Items of the store · namespace users, <b>ada</b>")]
    assert "1 item, " in items
    assert not [one for one in shown if "secret" in one]
