"""Debian's Chromium, as a person's browser."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright


@contextmanager
def chromium() -> Generator[Browser]:
    """A browser while the context lasts: its event loop is this thread's meanwhile, and no other test can run one."""
    program = shutil.which("chromium")
    assert program is not None  # pytest_runtest_setup has skipped otherwise
    with sync_playwright() as play:
        # As root, as in CI, Chromium has no sandbox of its own; it sees nothing but pages of this machine.
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
