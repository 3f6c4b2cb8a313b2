"""Pages that follow from the house: of each game, made from its rooms, of results, the reference.

A Sphinx extension: before a build it writes ``games/``, ``results/`` and ``reference/`` into the
folder of the documents, a file only when its text has changed. What a page says of a game is said
in its rooms (parameters, facts, docstrings of rules and theory, players), and here only put in
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from inspect import cleandoc, getdoc
from pathlib import Path
from typing import Any

import results
from deviations import figure, learning
from gymnasium import spaces

import llm_games
from llm_games.baselines.people_data import figures_of
from llm_games.baselines.play_measures import play_measures
from llm_games.baselines.regret import OPTIONAL, claimed, has
from llm_games.benchmarks.show.cli.show import about
from llm_games.codecs import ACTIONS
from llm_games.facts import Fact, as_given
from llm_games.game_rooms import ROOMS, part
from llm_games.registry import VERSION, game_class, make, rulebook
from llm_games.rulebook import Rulebook
from llm_games.words import versions

REFERENCE = {  # pages of names that programs of others import: title and modules of each
    "games": (
        "Writing a game",
        "rulebook rounds facts questions asides talk registry env table view words replies noise "
        "normalisation errors",
    ),
    "players": (
        "Seating players",
        "wrappers.policy wrappers.seats wrappers.play wrappers.llm_policy wrappers.planning "
        "wrappers.tools wrappers.user_players wrappers.clients.base wrappers.clients.scripted "
        "baselines.players baselines.rules baselines.named_tools",
    ),
    "learners": (
        "Training learners",
        "baselines.learner wrappers.single_agent wrappers.vector_env wrappers.team_env "
        "wrappers.async_env wrappers.learned wrappers.sb3 wrappers.sb3_log",
    ),
    "judging": (
        "Judging play",
        "baselines.regret baselines.batch_play baselines.scenarios benchmarks.judge.intervals "
        "benchmarks.judge.paired benchmarks.judge.variance benchmarks.judge.pairwise_ratings",
    ),
    "runs": (
        "Running experiments",
        "benchmarks.run.api benchmarks.record.recorded_games benchmarks.judge.paper "
        "benchmarks.judge.result_table benchmarks.judge.results benchmarks.judge.compare "
        "benchmarks.show.export.table_files benchmarks.run.estimate benchmarks.show.page",
    ),
}


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before a build."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir)))
    app.connect("autodoc-process-docstring", own_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write all pages into the folder of the documents, and remove those of what is gone."""
    pages = dict(all_pages())
    for place in ("games", "results", "reference"):
        (folder / place).mkdir(exist_ok=True)
        for old in (folder / place).iterdir():
            if f"{place}/{old.name}" not in pages:
                old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


TYPE = ":type: "


def own_words(app: Any, what: str, name: str, obj: Any, options: Any, text: list[str]) -> None:
    """Leave out what Python itself says of a named tuple's fields: their classes explain them.

    What stands before a colon is no type, as napoleon has it, for annotations say the types.
    """
    if text and text[0].startswith("Alias for field number "):
        text.clear()
    if what in ("attribute", "data", "property"):
        for place, line in enumerate(text):
            if line.startswith(TYPE):
                text[:] = [f"{line.removeprefix(TYPE)}: {text[0]}", *text[1:place]]
                break


def all_pages() -> Iterator[tuple[str, str]]:
    """Yield each page's place and its text."""
    ours = [name for name, room in ROOMS.items() if room.rules.startswith("llm_games.games.")]
    yield "games/index.md", overview(ours)
    for name in ours:
        drawn, learnt = figure(rulebook(name)), learning(rulebook(name))
        yield f"games/{name}.svg", drawn.svg
        if learnt:
            yield f"games/{name}_learner.svg", learnt.svg
        yield f"games/{name}.md", game_page(name, drawn.sentence, learnt.sentence if learnt else "")
    yield from results.pages()
    yield "reference/index.md", reference()
    for name, (title, modules) in REFERENCE.items():
        yield f"reference/{name}.md", modules_page(title, modules.split())


# -- games -----------------------------------------------------------------------------------------


def overview(names: Sequence[str]) -> str:
    """Return the list of the games."""
    rows = []
    for name in names:
        rules = rulebook(name)
        moves = "in turns" if rules.turns else "all at once"
        rows.append((f"[{rules.title}]({name}.md)", name, moves, rules.source))
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    text = (
        "Each page is made from the game's rooms: what it says is what the program does. "
        f'`lg.make("NAME-{VERSION}")` makes an environment of a game, `llm-games show NAME` '
        "prints most of its page."
    )
    return lines("# Games", text, table(("game", "name", "moves", "source"), rows), tree)


def game_page(name: str, shown: str, learnt: str = "") -> str:
    """Return the page of one game; `shown` and `learnt` say what its two figures show."""
    found, rules = game_class(name), rulebook(name)
    known = about(found, "v1")
    return lines(
        f"# {found.title}",
        f"`{name}-{VERSION}` · {found.source} · edition {found.edition}",
        "## Rules",
        prose(found),
        f"Seats are not worth the same: {known['seats']}." if known["seats"] else "",
        "## Parameters",
        table(
            ("parameter", "default", "meaning and range"),
            [(f"`{p['name']}`", f"`{p['default']}`", p["meaning"]) for p in known["parameters"]],
        ),
        *presets(found),
        "## Spaces",
        seat_spaces(name),
        "## Columns",
        *columns(rules),
        "## Prompts",
        *prompts(found),
        "## Equilibrium",
        *equilibrium(name, rules, shown),
        *known["caveats"],
        *learner(name, learnt),
        *described(rules),
        "## Players",
        table(("player", "what it does"), code_first(known["players"].items())),
        *scenarios(known),
    )


def presets(found: type[Rulebook]) -> Iterator[str]:
    """Yield the named sets of parameters, if there are any."""
    if found.presets:
        rows = [
            (f"`{name}`", ", ".join(f"`{k} = {v!r}`" for k, v in as_given(values).items()))
            for name, values in found.presets.items()
        ]
        yield "### Presets"
        yield table(
            ("preset", "parameters"), [(name, text or "as by default") for name, text in rows]
        )


def seat_spaces(name: str) -> str:
    """Return what a seat acts in and sees, by setting."""
    rows = []
    for kind in ACTIONS:
        env = make(name, actions=kind)
        rows.append((f'`actions="{kind}"`', brief(env.action_space(env.possible_agents[0]))))
    for mode in ("numeric", "text"):
        env = make(name, obs_mode=mode)
        rows.append((f'`obs_mode="{mode}"`', brief(env.observation_space(env.possible_agents[0]))))
    return table(("setting", "space of the first seat"), rows)


def brief(space: spaces.Space[Any]) -> str:
    """Write a space without what stands elsewhere: the limits of columns, the letters of texts."""
    if isinstance(space, spaces.Dict):
        return ", ".join(f"`{key}`: {brief(part)}" for key, part in space.items())
    if isinstance(space, spaces.Text):
        return f"`Text({space.max_length})`, so many characters at most"
    if isinstance(space, spaces.Box) and (space.low.min(), space.high.max()) != (
        space.low.max(),
        space.high.min(),
    ):
        return f"`Box({space.shape}, {space.dtype})`, see the columns"
    return f"`{space}`"


def columns(rules: Rulebook) -> Iterator[str]:
    """Yield what a seat sees as numbers: what comes for each seat, or thing, is one row."""
    rows = [column(fact, rules.players) for fact in rules.facts]
    yield f"{len(rules.columns())} numbers, in this order, with the parameters above."
    yield table(("column", "from", "to", "meaning"), rows)


def column(fact: Fact, players: int) -> tuple[str, str, str, str]:
    """Return a fact's row."""
    all_of_it = fact.columns(players)
    names = [f"`{all_of_it[i].name}`" for i in dict.fromkeys((0, len(all_of_it) - 1))]
    meaning = fact.meaning.format("i") if fact.each else fact.meaning
    return " … ".join(names), f"{fact.low:.16g}", f"{fact.high:.16g}", meaning


def prompts(found: type[Rulebook]) -> Iterator[str]:
    """Yield what the first seat reads at the start of a game, in each wording."""
    yield "What the first seat reads at the start of a game, and a legal reply, in each wording."
    for version in versions(found.name):
        yield f"<details><summary>{version}</summary>"
        for heading, text in about(found, version)["sample"].items():
            yield f"{heading}:"
            yield f"````text\n{text}\n````"
        yield "</details>"


def equilibrium(name: str, rules: Rulebook, shown: str) -> Iterator[str]:
    """Yield what the player ``rational`` is, why, and what one seat gains that leaves it."""
    yield f"The player `rational` is {claimed(rules)}."
    yield getdoc(part(name, "theory")) or ""
    yield f"![What one seat gains that leaves rational play]({name}.svg)"
    yield shown
    measures = [measure for measure in OPTIONAL if has(name, measure)]
    if measures:
        yield f"Beside regret its theory defines: {', '.join(measures)}."


def described(rules: Rulebook) -> Iterator[str]:
    """Yield what describes play in reports, and what people did, if a room has them."""
    if names := play_measures(rules):
        yield "## Measures of play"
        yield f"Reports have, with these parameters: {', '.join(names)}."
    if figures := figures_of(rules.name):
        rows = dict.fromkeys((f"`{f.parameters}`", f.study, f.condition) for _, f in figures)
        yield "### People"
        yield "With these parameters people's figures stand beside play."
        yield table(("rules", "study", "condition"), list(rows))


def learner(name: str, learnt: str) -> Iterator[str]:
    """Yield what a learner came to, if there is a result."""
    if learnt:
        yield "## A learner"
        yield f"![What a learner gains among rational players]({name}_learner.svg)"
        command = "python -m llm_games.benchmarks.studies.gains_by_game"
        yield f"{learnt} `{command}` trains MaskablePPO again."


def scenarios(known: dict[str, Any]) -> Iterator[str]:
    """Yield the tables of held-out partners, if there are any."""
    if known["scenarios"]:
        yield "## Scenarios"
        yield table(("scenario", "others at the table"), code_first(known["scenarios"].items()))


# -- reference -------------------------------------------------------------------------------------


def reference() -> str:
    """Return the first page of the reference."""
    names = [name for name in llm_games.__all__ if not name.startswith("__")]
    for name in names:  # what is imported when it is asked for is a member from then on
        getattr(llm_games, name)
    tree = "\n".join(["```{toctree}", ":hidden:", "", *REFERENCE, "```"])
    return lines(
        "# Reference",
        "`import llm_games as lg` is all that most programs need.",
        automodule("llm_games", f":members: {', '.join(names)}", ":no-index:"),
        tree,
    )


def modules_page(title: str, modules: Iterable[str]) -> str:
    """Return a page of the reference, a section for each module."""
    parts = [f"## llm_games.{name}\n\n{automodule(f'llm_games.{name}')}" for name in modules]
    return lines(f"# {title}", *parts)


def automodule(name: str, *options: str) -> str:
    """Return the directive that shows a module's docstrings."""
    told = "".join(f"\n   {option}" for option in (options or (":members:",)))
    return f"```{{eval-rst}}\n.. automodule:: {name}{told}\n```"


# -- Markdown --------------------------------------------------------------------------------------


def prose(found: type[Rulebook]) -> str:
    """Return what a game's docstring says after its title."""
    return cleandoc(getdoc(found) or "").removeprefix(f"{found.title}.").strip()


def lines(*parts: str) -> str:
    """Put the parts of a page below one another."""
    return "\n\n".join(filter(None, parts)) + "\n"


def code_first(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Write names as code."""
    return [(f"`{name}`", text) for name, text in pairs]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *cells))
