"""Tries every library on every game, in environments of their own, and writes what came of it.

``python -m tests.libraries.run`` makes an environment for each library out of its pinned
requirements and this checkout, runs its script there, keeps what came of it in ``results.json`` and
writes the table of results; named libraries are tried alone, and with ``--missing`` only
games on which what is pinned was not tried before. An hour on one core. It needs uv, and the
network; ``UV_TORCH_BACKEND=cpu`` (or ``UV_FIND_LINKS``, a folder of wheels) keeps torch to its CPU
build.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

from llm_games.benchmarks.studies import dated
from llm_games.game_rooms import ROOMS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS, PAGE = HERE / "results.json", dated.RESULTS / "libraries.md"
LIBRARIES = sorted(path.stem for path in HERE.glob("*.txt"))
PACKAGES = ("llm-games", "pettingzoo", "gymnasium", "numpy", "torch")
LIMIT = 3600
"""Seconds that a library may take."""
SHOWN = 80
"""Characters of a fault that the table shows; what follows is a game's own."""


def environment(folder: Path, *wanted: str | Path, python: str = "3.11") -> Path:
    """Make an environment with uv and return its Python; `wanted` goes to ``uv pip install``."""
    subprocess.run(["uv", "venv", "-q", "-p", python, folder], check=True)
    install = ["uv", "pip", "install", "-q", "-p", folder, "-c", ROOT / "constraints.txt"]
    subprocess.run([*install, *wanted], check=True)
    return folder / "bin" / "python"


def versions(python: Path) -> dict[str, str]:
    command = ["uv", "pip", "list", "-q", "-p", python, "--format", "json"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {package["name"]: package["version"] for package in json.loads(found)}


def tried(library: str, folder: Path, games: Iterable[str]) -> dict[str, Any]:
    """Run a library's script in an environment of its own; what came of it, form by form."""
    python = environment(folder / library, "-r", HERE / f"{library}.txt", ROOT)
    script = HERE / f"with_{library}.py"
    command = [python, script, *(f"{game}-v0" for game in games)]
    run = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=False
    )
    forms: dict[str, dict[str, str]] = {}
    for line in run.stdout.splitlines():
        if line.startswith('{"form"'):
            row = json.loads(line)
            forms.setdefault(row["form"], {})[row["game"].removesuffix("-v0")] = row["fault"]
    if run.returncode or not forms:
        raise SystemExit(f"{script.name} ended with code {run.returncode}")
    found, named = versions(python), requirements(library)
    told = {name: found[name] for name in dict.fromkeys([*named, *PACKAGES]) if name in found}
    return {"date": dated.today(), "versions": told, "forms": forms}


def pins(library: str) -> dict[str, str]:
    lines = (HERE / f"{library}.txt").read_text().splitlines()
    pinned = (line.partition("==") for line in lines if line[:1] not in ("", "#"))
    return {name.partition("[")[0].lower(): version for name, _, version in pinned}


def requirements(library: str) -> list[str]:
    """Return what a library's environment pins, without versions and extras."""
    return [*pins(library)]


def missing(library: str, before: dict[str, Any] | None) -> list[str]:
    """Return the games on which some form of a library was not yet tried with what is pinned."""
    had = before["versions"] if before else {}
    if any(had.get(name, "").partition("+")[0] != pin for name, pin in pins(library).items()):
        return [*ROOMS]
    return [game for game in ROOMS if any(game not in tried for tried in before["forms"].values())]


def joined(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what came of two runs with the same pins; where they had other versions, name both."""
    forms = {
        form: dict(sorted({**before["forms"].get(form, {}), **games}.items()))
        for form, games in now["forms"].items()
    }
    told = {}
    for name, version in now["versions"].items():
        had = before["versions"].get(name, version)
        told[name] = had if version in had.split(" and ") else f"{had} and {version}"
    return {"date": now["date"], "versions": told, "forms": forms}


def rows(results: dict[str, Any]) -> Iterator[str]:
    """Write the table, a line for each form of a library, and what it was run with."""
    yield "| library | form | works in | does not, and why |"
    yield "|---|---|---|---|"
    for library, found in results.items():
        package = requirements(library)[0]
        name = f"`{library}`: {package} {found['versions'][package]}"
        for form, games in found["forms"].items():
            faults = {game: shorten(fault, SHOWN) for game, fault in games.items() if fault}
            works = f"all {len(games)} games" if not faults else f"{len(games) - len(faults)} games"
            why = []
            for fault in dict.fromkeys(faults.values()):
                of_it = [f"`{game}`" for game in faults if faults[game] == fault]
                where = "all" if len(of_it) == len(games) else ", ".join(of_it)
                why.append(f"{where}: {fault.replace('|', '/')}")
            yield f"| {name} | {form} | {works} | {'<br>'.join(why)} |"
            name = ""
    yield ""
    for library, found in results.items():
        packages = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
        yield f"* `{library}`, {found['date']}: {packages}."


def main() -> None:
    """Try the libraries named, or all, and write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=", ".join(LIBRARIES))
    parser.add_argument("--missing", action="store_true", help="only games not tried before")
    asked = parser.parse_args()
    chosen = asked.libraries or LIBRARIES
    if unknown := set(chosen) - set(LIBRARIES):
        parser.error(f"there is no {sorted(unknown)}: there are {LIBRARIES}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for library in chosen:
        before = results.get(library)
        games = missing(library, before) if asked.missing else [*ROOMS]
        if not games:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = tried(library, Path(folder), games)
        results[library] = found if set(games) == set(ROOMS) else joined(before, found)
        results = {name: results[name] for name in LIBRARIES if name in results}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        PAGE.write_text("\n".join(rows(results)) + "\n")


if __name__ == "__main__":
    main()
