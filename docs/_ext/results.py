"""Pages of results: one of each dated file in ``benchmarks/studies/results``.

A page says what was measured, with which command, on which day and with which versions. A study
that has a function ``page`` sums its rows up; of any other file all rows are shown.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

from llm_games.benchmarks.studies.dated import RESULTS, markdown

STUDIES = RESULTS.parent
SOURCE = "https://github.com/llm-games/llm-games/tree/main/benchmarks/studies/"
PROVENANCE = "day", "version", "versions", "package"
TITLES = {  # the name of a file, or of the study that reads it
    "gains_by_game": "A learner in each game",
    "training_gains": "Learners beside the best response",
    "training_variants": "Trainings with other settings",
    "league_gains": "Self-play and learners of auctions",
    "solver_gaps": "Solvers of small games, and Q-learning",
    "psro_rounds": "PSRO",
    "best_responses": "Best responses",
    "grpo_gains": "GRPO of the embedded model",
    "carried": "From a ghost to its model",
    "ghost_fits": "How well ghosts foretell",
    "cached_opponents": "Replies that a learner's opponents are asked for",
    "libraries": "Libraries for learners",
    "learner_speed": "Speed of learners' views",
    "table_speed": "Speed of one table beside other libraries",
    "jax_tables": "Tables in JAX",
    "million": "Runs of up to a million decisions",
    "scenarios": "Scores in the scenarios",
    "cross_tables": "Ten players in three games",
    "skill_accuracy": "Measures of skill of known players",
    "coverage": "Coverage of intervals",
    "invented_code": "A code that learners invent",
    "q_learning_markets": "Markets of Q-learners",
    "escape_times": "Times of an evacuation",
    "replies": "Replies that are read",
    "noise_battery": "Chance",
    "costs": "Costs of the papers' experiments",
}
ABOUT = {  # of files that no study of their name writes
    "training_variants": "Settings of `python -m llm_games.benchmarks.studies.training_gains` that "
    "did not work as well, seeds 11 and 12 or 1 to 5: share of the best response.",
    "ghost_fits": "`llm-games ghost show` of ghosts of 16 recorded episodes (of the embedded model "
    "10): held-out log-loss in nats a decision, and the share of right first guesses; `off` is how "
    "far confidence is from the share of right guesses.",
    "cached_opponents": "PPO (32 copies, 5 rounds, one seed) against the embedded model with "
    "`samples = 4`, `nearest` and a budget of 2,500 calls: shares of its decisions that were "
    "known, asked and answered as the nearest; then the learner's steps a second.",
    "libraries": "`python -m tests.libraries.run` tries each library on each game: whether a short "
    "training ends, not whether anything good is learned.",
    "learner_speed": "`python -m llm_games.benchmarks.studies.speed.learner_speed`: a learner's "
    "steps per CPU second by the number of copies, random actions, one core; then how many times "
    "the speed of single copies in turns, and of two-player public goods, that is.",
    "table_speed": "`python benchmarks/studies/speed/gate.py --peers`: CPU time of episodes of "
    "20 rounds of decisions, drawn moves, in pairs, medians of seven, on a busy machine. "
    "TextArena's rounds of talk, in which nothing would be said, are cut out. What players are "
    "shown differs. TextArena tells all the same: its rules, some 1,650 characters, in the first "
    "round, then some 640 a round of who gave what and who holds what; its bare environment hands "
    "a player what is new, its wrapper for models the whole history, 2,300 characters in the "
    "second round and 13,800 in the last. Our text is another for each of the four players and "
    "whole in every round: the rules, the last round in the player's own terms and the question, "
    "700 to 1,000 characters; a reply is a JSON object, and infos say how it was read. So the "
    "wrapper writes more, the bare environment less than we do. rps_v2 shows two players the "
    "other's last move; our numbers are all that a player knows.",
    "million": "`python -m llm_games.benchmarks.studies.speed.million`: CPU seconds and peaks of "
    "memory in MB, of each process, of a run by workers that is killed and goes on.",
    "scenarios": "`llm-games run scenarios --seat rational`, and with `cooperative`: mean score "
    "over the scenarios of a game, 95 % intervals, none where nothing is left to chance.",
    "q_learning_markets": "`python -m llm_games.benchmarks.studies.q_learning`: 200 duopolies of "
    "each demand, 95 % intervals. Calvano et al. have profit gains of about .70 to .90.",
    "escape_times": "`python -m llm_games.baselines.games.emergency_evacuation.escape_times`: "
    "when the last is out, mean of 20 rooms, beside two bounds: people matched to exits and rounds "
    "as if nobody stood in another's way, and the flow over time with one person in each cell.",
    "replies": "`pytest tests/test_replies.py`: replies in `tests/data` with what a careful person "
    "reads in them, 257 written before the reader and 135 afterwards, each batch before it was run "
    "on them. Lost: there is an answer, and it was not read. Guessed: what was read is not it.",
    "noise_battery": "`python -m llm_games.benchmarks.studies.speed.noise_battery`: streams of "
    "`llm_games.noise` through TestU01 and dieharder; `counter` is a control that must fail. A "
    "p-value within 0.001 of 0 or 1 is suspect, within 1e-10 failed.",
}


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks for it; `rooms` writes the pages."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page's place and its text, and the pictures."""
    tree = "\n".join(["```{toctree}", "", *TITLES, "```"])
    about = (
        "Measurements, each with its command, day and versions; none is of a build of this site."
    )
    yield "results/index.md", f"# Results\n\n{about}\n\n{tree}\n"
    for name, title in TITLES.items():
        module, table = STUDIES / f"{name}.py", RESULTS / f"{name}.csv"
        source = module.read_text("utf-8") if name not in ABOUT else ""
        parts = [f"# {title}", ABOUT.get(name) or cleandoc(ast.get_docstring(ast.parse(source)))]
        if table.exists():
            parts.append(f"{made(table)} All rows: [{name}.csv]({SOURCE}results/{name}.csv).")
        if "\ndef page(" in source:
            study = import_module(f"llm_games.benchmarks.studies.{name}")
            parts.append(study.page())
            if "\ndef svg(" in source:
                parts.append(f"![{title}]({name}.svg)")
                yield f"results/{name}.svg", study.svg()
        elif table.exists():
            parts.append(shown(table))
        else:
            parts.append((RESULTS / f"{name}.md").read_text("utf-8"))
        yield f"results/{name}.md", "\n\n".join(parts).rstrip() + "\n"


def rows_of(table: Path) -> list[dict[str, str]]:
    """Return the rows of a file."""
    with table.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def made(table: Path) -> str:
    """Say when rows were made, and with what."""
    rows = rows_of(table)
    said = [sorted({row[name] for row in rows}) for name in PROVENANCE if name in rows[0]]
    text = "; ".join(", ".join(each) for each in said) + "."
    return re.sub(r"; (?=\d)", "; llm-games ", text)


def shown(table: Path) -> str:
    """Return all rows as a table."""
    rows = rows_of(table)
    heads = [name for name in rows[0] if name not in PROVENANCE]
    return markdown(heads, [[row[name].replace("|", "\\|") for name in heads] for row in rows])
