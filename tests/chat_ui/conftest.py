"""agent-chat-ui as it is published on npm, in Debian's Chromium, before a project started with `agentvisor dev`."""

import json
import shutil
import subprocess
import threading
from collections.abc import Generator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page
from tests.support.browser import chromium
from tests.support.dev_process import DevProcess

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules"
APP = PACKAGES / "create-agent-chat-app" / "templates" / "vite"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A page's files are not worth a line."""


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Where the app is served; unchanged, and built anew."""
    if not PACKAGES.is_dir():
        pytest.skip("needs the packages of tests/chat_ui (make setup installs them where npm is)")
    folder = tmp_path_factory.mktemp("app") / "web"
    shutil.copytree(APP, folder)
    (folder / "node_modules").symlink_to(PACKAGES)
    built = subprocess.run(
        [str(PACKAGES / ".bin" / "vite"), "build"], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-4000:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder / "dist")))
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        serving.join(10)
        server.server_close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[DevProcess]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "agents.py").write_text((HERE / "agents.py").read_text())
    graphs = {name: f"./agents.py:{name}" for name in ("chat", "asking")}
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    dev = DevProcess(folder, "--no-reload").start()
    try:
        yield dev
    finally:
        dev.end()


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Closed with the module, so that tests of others can run."""
    with chromium() as browser:
        yield browser


class Chat:
    """The app, open on one agent."""

    def __init__(self, page: Page, app_url: str, host_url: str, agent: str) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(f"{app_url}?{urlencode({'apiUrl': host_url, 'assistantId': agent})}")

    def say(self, text: str) -> None:
        self.page.get_by_placeholder("Type your message...").fill(text)
        # While an answer streams there is no such button, and the page would take no message.
        self.page.get_by_role("button", name="Send", exact=True).click()

    def shows(self, text: str, seconds: float = 30) -> None:
        self.page.get_by_text(text, exact=False).first.wait_for(timeout=seconds * 1000)
