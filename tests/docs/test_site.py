"""The pages as a site: whole without a network, the same as on a code host, with links that lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from playwright.sync_api import Page
from tests.docs.blocks import ROOT, pages
from tests.support.browser import chromium

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]

DOCS = ROOT / "docs"
HEADINGS = {f"h{level}" for level in range(1, 7)}
COUNTED = {"li", "ol", "ul", "table", "tr", "pre", "code", "strong", "em"} | HEADINGS
OF_MARKDOWN = {
    "list_item": "li", "ordered_list": "ol", "bullet_list": "ul", "table": "table", "tr": "tr", "strong": "strong",
    "em": "em",
}  # fmt: skip


class Loader(yaml.SafeLoader):
    """Of mkdocs.yml, less what only mkdocs understands."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
CONFIG: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The site of a folder with a mkdocs.yml, as `make docs` builds it."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "html"
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


class Html(HTMLParser):
    """What is in a page's own text, and what the page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: Counter[str] = Counter()
        self.anchors: list[str | None] = []
        self.loaded: list[str] = []
        self._article = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._article |= tag == "article"
        if tag != "a":
            self.loaded += [one for one in (given.get("src"), given.get("href"), given.get("data-src")) if one]
        if self._article and tag in COUNTED:
            self.parts["heading" if tag in HEADINGS else tag] += 1
            if tag in HEADINGS:
                self.anchors.append(given.get("id"))

    def handle_endtag(self, tag: str) -> None:
        self._article &= tag != "article"


def as_on_a_code_host(page: Path) -> tuple[Counter[str], list[str]]:
    """The same of a page's Markdown, by the common rules."""
    parts: Counter[str] = Counter()
    anchors: list[str] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following:
            parts["heading"] += 1
            anchors.append(re.sub(r"[^\w -]", "", following.content.lower()).replace(" ", "-"))
        elif token.type in ("fence", "code_block"):
            parts.update(("pre", "code"))
        for one in (token, *(token.children or ())):
            if part := OF_MARKDOWN.get(one.type.removesuffix("_open")) if one.nesting == 1 else None:
                parts[part] += 1
            parts["code"] += one.type == "code_inline"
    return parts, anchors


def test_every_page_has_the_parts_and_the_anchors_that_it_has_on_a_code_host(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        built = site / page.relative_to(DOCS).with_suffix(".html")
        html = Html((built.with_name("index.html") if page.name == "README.md" else built).read_text())
        parts, anchors = as_on_a_code_host(page)
        assert (html.anchors, +html.parts) == (anchors, +parts), page.name


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    built = sorted(site.rglob("*.html"))
    assert len(built) > len(list(DOCS.rglob("*.md")))
    for page in built:
        loaded = Html(page.read_text()).loaded
        assert loaded
        assert [one for one in loaded if re.match(r"([a-z]+:)?//", one)] == [], page.name


def places(nav: list[Any]) -> Generator[str]:
    for entry in nav:
        ((_, place),) = entry.items()
        yield from places(place) if isinstance(place, list) else [place]


def test_every_page_has_its_place_in_the_nav_and_every_place_its_page() -> None:
    named = list(places(CONFIG["nav"]))
    folders = {place.rstrip("/") for place in named if place.endswith("/")}
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    listed = {page for page in there if page.partition("/")[0] not in folders or "/" not in page}
    assert len(named) == len(set(named))
    assert listed <= set(named)
    assert {place for place in named if not place.endswith("/")} <= there


def test_the_nav_has_the_four_kinds_of_pages() -> None:
    assert [next(iter(entry)) for entry in CONFIG["nav"]] == ["Home", "Tutorial", "Guides", "Reference", "Explanation"]


def test_what_a_page_links_to_outside_the_documents_is_shown_in_the_site(site: Path) -> None:
    page = (site / "recovery.html").read_text()
    test = "test_a_finished_task_is_not_run_again_after_its_sibling_was_killed"
    assert f'href="files/tests/flow/test_agent_killed.py.html#{test}"' in page
    shown = (site / "files/tests/flow/test_agent_killed.py.html").read_text()
    assert re.search(rf'id="{test}".*?def.*?{test}', shown, re.DOTALL)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Our site's configuration over two pages."""
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=ignored)
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_there() -> None:\n    assert True\n")
    (tmp_path / "docs" / "decisions" / "README.md").write_text("# Decisions\n")
    (tmp_path / "docs" / "errors.md").write_text("# Errors\n\n## One of them\n")
    return tmp_path


GOOD = ("errors.md#one-of-them", "../tests/test_it.py#test_there", "../tests", "../tests/test_it.py")
BAD = {
    "gone.md": "'gone.md'",
    "errors.md#two-of-them": "#two-of-them",
    "../tests/test_gone.py": "test_gone.py",
    "../tests/test_it.py#test_gone": "#test_gone",
    "/errors.md": "'/errors.md'",
    "#nowhere": "#nowhere",
}
"""Links, and what of them is said."""


def linking(folder: Path, *links: str) -> subprocess.CompletedProcess[str]:
    (folder / "docs" / "index.md").write_text("# Home\n\n" + "".join(f"[It]({link}).\n" for link in links))
    return build(folder, folder / "site")


def test_links_that_lead_somewhere_are_taken(small: Path) -> None:
    built = linking(small, *GOOD)
    assert built.returncode == 0, built.stderr


def test_links_that_lead_nowhere_and_a_page_without_a_place_fail_the_build(small: Path) -> None:
    (small / "docs" / "forgotten.md").write_text("# Forgotten\n")
    built = linking(small, *GOOD, *BAD)
    assert built.returncode != 0
    warned = [line for line in built.stderr.splitlines() if re.match(r"WARNING|  - ", line)]
    for said in (*BAD.values(), "forgotten.md"):
        assert any(said in line for line in warned), f"{said}:\n{built.stderr}"
    assert len(warned) == len(BAD) + len(["the pages without a place", "the one of them"])


@pytest.fixture
def opened(site: Path) -> Generator[tuple[Page, list[str]]]:
    """The site's first page from the disk, in a browser; and all that it asks for."""
    with chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        yield page, asked


SOUGHT = {
    "fencing token folds": "The journal",
    "max_pending_write_bytes": "Configuration",
    "interrupt": "Interrupts: what waits for an answer",
}
"""What somebody types, and a page that tells of it."""


@pytest.mark.system("chromium")
def test_the_search_finds_pages_without_a_server(opened: tuple[Page, list[str]]) -> None:
    page, asked = opened
    for words, title in SOUGHT.items():
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").fill("")
        page.locator(".md-search__input").press_sequentially(words)
        found = page.locator(".md-search-result__link").filter(has_text=title).first
        found.wait_for(timeout=30_000)
        found.click()
        page.locator("article h1").filter(has_text=title).wait_for(timeout=30_000)
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob", "about"}


SOUND = r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w./@%~-]*)?(#[\w.-]+)?|http://localhost:\d+(/\w+)*"
EXTERNAL = re.compile(r"\]\((\w+:[^)\s]*)\)|<(https?:[^>\s]*)>")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_to_other_sites_have_a_sound_form(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in (one or other for one, other in EXTERNAL.findall(prose)):
        assert re.fullmatch(SOUND, link), link
