"""Every library was tried on every game, with the versions that it pins."""

import json
import re

from libraries import run
from playing import each_row

from llm_games.game_rooms import ROOMS

RESULTS = json.loads(run.RESULTS.read_text())


@each_row("library", run.LIBRARIES)
def test_a_library_was_tried_on_every_game_with_the_versions_it_pins(library):
    lines = (run.HERE / f"{library}.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w-]+(\[\w+\])?==[\d.]+", pin) for pin in pins)
    found, forms = RESULTS[library]["versions"], RESULTS[library]["forms"]
    for name, pin in zip(run.requirements(library), pins, strict=True):
        assert found[name].partition("+")[0] == pin.partition("==")[2]
    script = (run.HERE / f"with_{library}.py").read_text()
    assert forms
    for form, games in forms.items():
        assert f'"{form}"' in script
        assert set(games) == set(ROOMS)


def test_every_script_has_its_requirements():
    scripts = {path.stem.removeprefix("with_") for path in run.HERE.glob("with_*.py")}
    assert scripts == set(run.LIBRARIES) == set(RESULTS)
