"""The pictures of README: a model's worst decision in the viewer, and a game.

``python docs/pictures.py`` plays both runs offline and writes ``decision.png`` and ``game.gif``
beside it. It needs Chromium and the extra `dev`.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import llm_games as lg

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "llm_games.benchmarks.show.cli"]
BARGAIN = {"game": "divide_dollar", "params": {"players": 4, "rounds": 6}}
ROOM = {"players": 60, "layout": "small", "walker": "greedy"}


def worst_decision(folder: Path) -> None:
    """Take the page of the decision with the largest regret."""
    seats = ["tiny", "tiny", "rational", "best_response"]
    game = BARGAIN | {"seats": seats}
    run = lg.run({"title": "A bargain", "episodes": 3, "games": [game]}, folder / "bargain.db")
    serving = [*COMMAND, "view", str(run.path), "--no-open"]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as viewer:
        address = viewer.stdout.readline().strip()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"))
            page = browser.new_page(viewport={"width": 1100, "height": 760})
            page.goto(address)
            page.get_by_role("link", name="bargain").click()
            page.locator("#games td[data-name='largest regret'] a").first.click()
            page.screenshot(path=HERE / "decision.png")
            browser.close()
        viewer.terminate()


def evacuation(folder: Path) -> None:
    """Draw an evacuation, round by round."""
    game = {"game": "emergency_evacuation", "params": ROOM, "seats": ["rational"]}
    run = lg.run({"title": "A room", "episodes": 1, "games": [game]}, folder / "room.db")
    drawing = [*COMMAND, "animate", str(run.path), "-o", str(HERE / "game.gif")]
    subprocess.run(drawing, check=True)


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        worst_decision(Path(temporary))
        evacuation(Path(temporary))
