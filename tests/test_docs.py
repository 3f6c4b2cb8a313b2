"""Every code block of the documents runs, in order, as it stands."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
import urllib.request
from contextlib import contextmanager
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

from llm_games.benchmarks.run.config import (
    BudgetSettings,
    Config,
    GameSettings,
    GuestSettings,
    ModelSettings,
    PriceSettings,
    SeatSettings,
    parse,
)
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.show import cli
from llm_games.benchmarks.show.view.filter import PHASES, SORTS, Filter
from llm_games.version import __version__
from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE
from llm_games.wrappers.guests import Guests

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = {"_build", "games", "reference", "results"}  # by the site's build, from rooms and docstrings
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if not MADE & {*p.relative_to(DOCS).parts}]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


FILE = re.compile(r"^(?:#|\{#) (\S+/\S+)")  # a block that is a file says which in its first line


def blocks(language):
    """Return the blocks of a language that are no files, each with the files before it."""
    found = []
    for path in DOCUMENTS:
        text, files = path.read_text(), {}
        for block in BLOCK.finditer(text):
            if name := FILE.match(block[2]):
                files[name[1]] = block[2]
            elif block[1] == language:
                line = text[: block.start()].count("\n")
                found.append(pytest.param(block[2], dict(files), id=f"{path.name}:{line}"))
    return found


def test_every_block_has_a_language_that_is_run():
    kinds = {found[1] for path in DOCUMENTS for found in BLOCK.finditer(path.read_text())}
    assert kinds <= {"bash", "jinja", "python", "toml"}


def write(files, folder):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        if name.startswith("papers_of_mine/"):
            (folder / name).with_name("__init__.py").touch()


@pytest.mark.long
@pytest.mark.parametrize(("code", "files"), blocks("python"))
def test_python(code, files, tmp_path):
    """As a script of its own, so that it can be registered, pickled and imported."""
    write(files, tmp_path)
    (tmp_path / "block.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    subprocess.run(
        [sys.executable, "-W", "error", "block.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        check=True,
    )


@pytest.mark.long
def test_the_game_of_contributing_passes_all_that_is_asked_of_games_in_the_house(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    unread = shutil.ignore_patterns("__pycache__", "results")
    for name in ("llm_games", "wrappers", "baselines", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=unread)
    rooms = [f"{floor}/games/lowest_bid" for floor in ("llm_games", "baselines")]
    for block in BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text()):
        room, _, name = (FILE.match(block[2]) or [""] * 2)[1].partition("/")
        if room == "lowest_bid":
            write({name: block[2]}, tmp_path / rooms[name in ("theory.py", "players.py")])
    for room in rooms:
        (tmp_path / room / "__init__.py").write_text('"""lowest_bid."""\n')
    suites = [f"tests/test_{name}.py" for name in GAME_SUITES.split()]
    for arguments in (
        ["ruff", "check", *rooms],
        ["ruff", "format", "--check", *rooms],
        ["mypy", "llm_games/games/lowest_bid", "llm_games/baselines/games/lowest_bid"],
        ["pytest", "-q", "-n", "0", "-k", "lowest_bid", *suites],
    ):
        run = [sys.executable, "-m", *arguments]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


GAME_SUITES = "house rules env codecs prompts doors truth talk vector_env"
"""Tests that are parametrized by games and hold for each."""


@pytest.mark.parametrize(("text", "files"), blocks("toml"))
def test_files_are_experiments(text, files, tmp_path, monkeypatch):
    write(files, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    plan = resolve(parse(tomllib.loads(text), "docs"), "docs")
    unasked = plan.without_keys().model_copy(update={"links": Guests([])})
    assert players(unasked)


def test_all_keys_of_guests_are_in_the_docs():
    page = (DOCS / "notebooks" / "guests.md").read_text()
    assert all(re.search(rf"^{key} = ", page, re.MULTILINE) for key in GuestSettings.model_fields)


def test_all_keys_of_experiments_are_in_the_docs():
    told = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "experiments.md").read_text()))
    for section in (
        Config,
        GameSettings,
        ModelSettings,
        SeatSettings,
        BudgetSettings,
        PriceSettings,
    ):
        asides = {"player", "games", "models", "prices", "budget", "vary", "name", "guests"}
        missing = set(section.model_fields) - told - asides
        shared = {key.removesuffix("_per_seat") for key in missing}
        assert not shared - told, section


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "end", "made"),
    [
        ("experiments", "## Your own model on a server", "experiment.db experiment-report"),
        ("notebooks/branches", "## In the viewer", "again.db other.db worded.db other"),
        ("notebooks/collusion", "| option | is |", "forced.db best.db forced"),
        ("notebooks/types", "Simulated players", "guesses.db"),
        ("notebooks/isomorphs", "- Episodes are divided", "bar.db bar more.db"),
    ],
)
def test_experiments_and_commands(tmp_path, page, end, made):
    """The TOML block is the file that the `llm-games` lines after it run."""
    text = (DOCS / f"{page}.md").read_text().partition(end)[0]
    found = {
        language: [b[2] for b in BLOCK.finditer(text) if b[1] == language]
        for language in ("toml", "bash")
    }
    (tmp_path / "experiment.toml").write_text(found["toml"][0])
    commands = [line for block in found["bash"] for line in block.splitlines()]
    commands = [line for line in commands if line.startswith("llm-games ")]
    assert len(commands) >= 3
    for command in commands:
        arguments = shlex.split(command)[1:]
        run = [sys.executable, "-m", "llm_games.benchmarks.show.cli", *arguments]
        subprocess.run(run, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    assert all((tmp_path / name).exists() for name in made.split())


# What the bash blocks call beside llm-games, Python and pip.
PROGRAMS = {".", "apt-get", "git", "litellm", "llama-server", "mypy", "ollama", "pytest", "ruff"}
PROGRAMS |= {"sphinx-build", "vllm"}


def lines_of(text):
    return text.replace("\\\n", " ").splitlines()


LINES = [
    pytest.param(line, id=f"{path.name}: {line}")
    for path in DOCUMENTS
    for block in BLOCK.finditer(path.read_text())
    if block[1] == "bash"
    for line in lines_of(block[2])
]


@pytest.mark.parametrize("line", LINES)
def test_commands_of_the_shell_are_there(line):
    """Each names what there is: a command with its options, a module, an extra."""
    for part in line.partition("  #")[0].split(" && "):
        program, *given = [word for word in shlex.split(part) if not re.match(r"[A-Z_]+=", word)]
        name = Path(program).name or program
        if name == "llm-games":
            understood(given)
        elif name == "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            for extras in re.findall(r"\[(.*?)\]", part):
                assert {*extras.split(",")} <= {*project["optional-dependencies"]}
        elif name.startswith("python"):
            assert given[0] == "-m"
            assert find_spec(given[1])
        else:
            assert name in PROGRAMS


def understood(arguments):
    command = typer.main.get_command(cli.app)
    while isinstance(command, typer.core.TyperGroup):
        context = command.make_context("llm-games", [], resilient_parsing=True)
        context.resilient_parsing = False  # of what follows: an unknown name is an error
        name, command, arguments = command.resolve_command(context, arguments)
    command.make_context(name, [*arguments])


@contextmanager
def process(*arguments, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        arguments += ("--port", str(free.getsockname()[1]))
    running = subprocess.Popen(
        [sys.executable, "-m", "llm_games.benchmarks.show.cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield running.stdout.readline().strip()
    finally:
        running.terminate()
        running.communicate()


@pytest.mark.long
@pytest.mark.parametrize("page", ["start", "models", "evaluate"])
def test_the_commands_of_a_page_run(page, tmp_path):
    """In order, as they stand; a server of the embedded model takes the place of the reader's."""
    text = (DOCS / f"{page}.md").read_text().partition("## What all servers have in common")[0]
    lines = [line for b in BLOCK.finditer(text) if b[1] == "bash" for line in lines_of(b[2])]
    lines = [line for line in lines if line.startswith("llm-games ")]
    assert lines
    with process("serve-tiny", folder=tmp_path) as says:
        for line in lines:
            if "NAME" in line:
                address = re.search(r"http://\S+/v1", says)[0]
                line = re.sub(r"http://\S+/v1", address, line).replace("NAME", "tiny")
            arguments = shlex.split(line)[1:]
            if arguments[0] == "view":
                with process(*arguments, "--no-open", folder=tmp_path) as address:
                    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                    assert browser.open(address).status == 200
                continue
            run = [sys.executable, "-m", "llm_games.benchmarks.show.cli", *arguments]
            subprocess.run(
                run, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True
            )


def prose(path):
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(path):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    text = prose(path)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", head).lower() for head in heads)
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


LINKED = [*ROOT.glob("*.md"), *PAGES] + [
    path
    for floor in ("baselines", "benchmarks", "tests", "wrappers")
    for path in (ROOT / floor).rglob("*.md")
]


@pytest.mark.parametrize("path", LINKED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_links_within_the_checkout_lead_somewhere(path):
    """Also before the site is made: what it makes is named by the role ``doc``."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue  # `-b linkcheck` checks what is elsewhere
        assert not MADE & {*Path(name).parts}, target
        found = path.parent / name if name else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_documents_are_short_and_begin_without_what_a_newcomer_does_not_need():
    assert sum(len(path.read_text("utf-8").split()) for path in DOCS.glob("*.md")) <= 15_000
    readme, start = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/start.md"))
    assert len(readme.splitlines()) <= 200
    later = r"\b(editions?|rooms?|asides?|ghosts?|coverage|analyse|caches?)\b"
    assert not re.findall(later, readme + start, re.IGNORECASE)


def test_all_providers_are_in_the_docs():
    """With their addresses and the variables of their keys."""
    table = (DOCS / "models.md").read_text().partition("## All providers")[2]
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \| `(\w+)` \|$", table, re.MULTILINE)
    known = {"openai": COMPATIBLE, "providers": ADAPTED}
    assert [(extra, name) for name, _, _, extra in rows] == [
        (extra, name) for extra, of in known.items() for name in of
    ]
    for name, address, keys, extra in rows:
        about = known[extra][name]
        assert not about.base_url or address == f"`{about.base_url}`"
        assert tuple(re.findall(r"`(\w+)`", keys)) == about.keys


def test_all_filters_of_the_viewer_are_in_the_docs():
    table = (DOCS / "viewer.md").read_text().partition("| filter |")[2].partition("\n\n")[0]
    names = [found for row in table.splitlines() for found in row.split("|")[1:2]]
    told = re.findall(r"`(\w+)`", " ".join(names))
    assert {*told} == {field.name for field in fields(Filter)}
    assert {*SORTS, *PHASES} <= {*re.findall(r"`(\w+)`", table)}


def test_what_is_cited_is_this_version_and_every_paper():
    bib = (DOCS / "papers.bib").read_text()
    rooms = {path.parent.name for path in (ROOT / "benchmarks" / "papers").glob("*/page.py")}
    assert {*re.findall(r"^@\w+\{(\w+),$", bib, re.MULTILINE)} == {"llm_games", *rooms}
    assert f"  version = {{{__version__}}},\n" in bib
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
