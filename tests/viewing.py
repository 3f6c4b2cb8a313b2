"""A viewer for tests: served in a thread, looked at with a real Chromium where there is one."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

AXE = Path(__file__).parent / "data" / "axe" / "axe.min.js"
AXE_RUN = "axe.run({ preload: location.protocol !== 'file:' })"  # which may read no file
TOKEN = "token-of-a-test"
WAIT = 60_000  # milliseconds that a busy machine may take for a page
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NO_BROWSER = "no Chromium is installed: apt-get install chromium"


@contextmanager
def served(*paths, cache, budget=None):
    """Serve runs at a free port, with a folder for what is kept of them; give the address."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    from llm_games.benchmarks.show.view.app import app
    from llm_games.benchmarks.show.view.run_shelf import RunShelf
    from llm_games.benchmarks.show.view.serve import listening

    shelf = RunShelf(paths, cache)
    sock = listening(0)
    config = uvicorn.Config(
        app(shelf, TOKEN, budget), log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        sock.close()
        shelf.close()


def apart(work):
    """Do something in a thread of its own, and return what it returns.

    A browser's thread has an event loop that is running.
    """
    with ThreadPoolExecutor(1) as other:
        return other.submit(work).result()


class Visitor:
    """A person at a browser who has opened the printed address; what went wrong is kept."""

    def __init__(self, browser, address, **how):
        how = {"viewport": {"width": 1280, "height": 900}} | how
        self.context = browser.new_context(**how)
        self.context.set_default_timeout(WAIT)
        self.address, self.page, self.said = address, self.context.new_page(), []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda asked: self._asked(asked.url))
        self.page.on("response", self._answered)
        self.first()

    def first(self):
        first = "index.html" if self.address.startswith("file:") else f"?token={TOKEN}"
        self.page.goto(f"{self.address}/{first}")

    def _asked(self, url):
        if not url.startswith(self.address.partition("/seat/")[0]):
            self.said.append(f"asked another host: {url}")

    def _answered(self, response):
        if response.status >= 500:
            self.said.append(f"{response.status}: {response.url}")

    def open(self, path):
        return self.page.goto(self.address + path)

    def press(self, key):
        self.page.wait_for_load_state()
        self.page.keyboard.press(key)

    def problems(self):
        """Return what axe finds wrong with the page as it is now, and that it scrolls sideways."""
        self.page.wait_for_load_state()  # its styles, too
        self.page.evaluate(AXE.read_text("utf-8") + ";0")
        found = self.page.evaluate(AXE_RUN)["violations"]
        told = [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
        wide, room = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return told + ([f"{wide} pixels wide, {room} are there"] if wide > room else [])


@contextmanager
def visits(browser, address):
    """Open the viewer as persons do: give what lets one come. In the end nothing has gone wrong."""
    visitors = []

    def come(**how):
        visitors.append(Visitor(browser, address, **how))
        return visitors[-1]

    yield come
    for visitor in visitors:
        visitor.context.close()
        assert visitor.said == [], visitor.said


def expect(locator):
    """Return what is expected of a part of a page, in the time that a busy machine may take."""
    from playwright.sync_api import expect

    expect.set_options(timeout=WAIT)
    return expect(locator)
