"""Every paper's file ends with its whole page, whatever models answer; no number is impossible.

What is possible is said here once more, by the names of columns and axes.
"""

import csv
import math
import random
import re
from itertools import product

import numpy as np
import pytest
from markupsafe import escape
from matplotlib.collections import LineCollection, PolyCollection
from test_papers import FILES

from llm_games.benchmarks.judge.paper import edition_of, owner
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import read
from llm_games.benchmarks.run import api
from llm_games.benchmarks.run.config import load
from llm_games.benchmarks.show.page import build, canvas
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.wrappers.clients.scripted import ScriptedClient

LABELS, ROUNDS = 2, 5
CUT = {
    "emergency_evacuation": {"max_rounds": ROUNDS},
    "water_allocation": {"days": ROUNDS},
    "english_auction": {"items": "items_5"},
    "battle_royale": {},
    "pirate_game": {},
}
"""How a game is cut that has no number of rounds."""
LONG = {
    "alympics/vanilla",
    *(f"auc-arena/{n}" for n in ("interspecific", "intraspecific", "learning", "planning")),
    "auc-arena/rationality",
    *(f"gamma-bench/{n}" for n in ("published", "reasoning", "robustness", "v2", "vanilla")),
    "gamma-bench/variants",
    *(f"shall-we-talk/{n}" for n in ("beauty_contest", "bertrand", "evacuation", "models")),
    "shall-we-talk/options",
}
"""Files that ask for more than 4,500 calls, too many to be played whole each night."""
RUBBISH = (
    *("", "I would rather not say.", "{", '{"answer": null}', "[]", "9" * 40, "-7", "150"),
    *('{"%s": 99999999999999999999999999}', '{"%s": -1000000}', '{"%s": 150}', '{"%s": "all"}'),
    *('{"%s": [1, 2]}', '{"%s": {}}', '{"%s": true}', '{"%s": 1e999}', '{"%s": 4100.5}'),
)


class Answers:
    """Answers questions legally by chance, but for rubbish in every so many replies; 0: never."""

    def __init__(self, every):
        self.every, self.many = every, 0

    def __call__(self, request):
        self.many += 1
        noise, question = Noise(self.many), request.question
        if self.every and self.many % self.every == 0:
            text = RUBBISH[self.many // self.every % len(RUBBISH)]
            return text.replace("%s", getattr(question, "key", "") or "number")
        if question is None:
            return "Let us all do the same."
        return question.reply(question.sample(noise))


CLIENTS = {"never": 0, "in every third reply": 3, "always": 1}
CASES = list(product(FILES, CLIENTS, (1, 2, 5)))


def raw(name, turn):
    """Return a paper's file; of a long one two labels, others each `turn`, and five rounds."""
    content = load(name)
    if name not in LONG:
        return content
    for key in ("games", "vary"):
        if several := content.get(key):
            at = {(turn * LABELS + i) % len(several) for i in range(LABELS)}
            content[key] = [several[place] for place in sorted(at)]
    for game in content["games"]:
        game["params"] = game.get("params", {}) | shorter(game)
    return content


def shorter(game):
    if game["game"] in CUT:
        return CUT[game["game"]]
    long = getattr(rulebook(game["game"], **game.get("params", {})), "rounds", 0) > ROUNDS
    return {"rounds": ROUNDS} if long else {}


def played(name, every, episodes, folder):
    turn = CASES.index((name, every, episodes)) if (name, every, episodes) in CASES else 0
    client = ScriptedClient(Answers(CLIENTS[every]))
    path = folder / f"{name.replace('/', '_')}_{every[:2]}_{episodes}.db"
    return api.run(raw(name, turn), path, seats=[client], episodes=episodes, use_cache=False)


# -- what is possible ------------------------------------------------------------------------------


def over(of):
    return lambda rules: (min(of(r)[0] for r in rules), max(of(r)[1] for r in rules))


def at_most(name):
    return over(lambda rules: (0, float(getattr(rules, name, 0))))


def moves(rules):
    if free(rules):
        return FREE
    if getattr(rules, "price_cap", "") == "none":
        return POSITIVE
    most = max(1, float(getattr(rules, "ratio", 1))) if rules.name == "beauty_contest" else 1
    return 0, most * rules.bounds()[1] / rules.unit


def free(rules):
    some = ("bid_range", "contribution_range")
    return any(getattr(rules, name, "") == "unbounded" for name in some)


def best_is_a_mean(rules):
    """Tell whether chance may bring more than the best that `welfare` names."""
    return rules.name == "water_allocation" or (rules.name == "matrix_game" and rules.slips)


def unless_free(low, high, otherwise=(-math.inf, math.inf)):
    """Return such ends, but others where any number counts."""
    return over(lambda rules: otherwise if free(rules) else (low, high))


SHARE, PERCENT, POSITIVE, FREE = ((0, 1), (0, 100), (0, math.inf), (-math.inf, math.inf))
SHARES = r"bid / value|share of valuation|mean bid / valuation|bid to value"
NAMES = {
    r"score(, .*)?|published|corrected|v4|v2|S6, .*|by v4": unless_free(0, 100),
    r".* %|% of the runs|(beauty contest|auction), (no )?history": PERCENT,
    r"SR .*|escaped|share|share of (games|calls|votes for it|the (long run|players))": SHARE,
    r"failed .*|.* mentioned|corrected failure rate|changed replans|exit balance": SHARE,
    r"distance": unless_free(0, 1, POSITIVE),
    r"efficiency": over(lambda r: POSITIVE if best_is_a_mean(r) else SHARE),
    SHARES: unless_free(0, math.inf),
    r"went|off the ratio|crowded|changed|at value|efficient|won": SHARE,
    r"number within its range|tied|filled in|α-rank|runs won": SHARE,
    r"regret|(interim )?regret|interim|exploitability|predicted|best-reply gap|misbid": POSITIVE,
    r"price to start|RSR.*|supply to requirement.*|variance over runs|%RSD|fallen": POSITIVE,
    r"spread of numbers|spread of .*|seconds|players of all runs|latency.*|bids": POSITIVE,
    r"deviation( d)?": POSITIVE,
    r"(final )?assets.*|ratio|.*asset ratio|action|money( left)?(, mean)?|\$": POSITIVE,
    r"rounds|mean round": over(lambda r: (1, float(getattr(r, "max_rounds", 1)))),
    r"N survivor|survivors( of a game(, mean)?)?": at_most("players"),
    r"players at the bar|escaped so far": at_most("players"),
    r"(days|water days|over budget|days survived).*": at_most("days"),
    r"health( points, mean)?": over(lambda r: (-math.inf, getattr(r, "hp_max", 0))),
    r"items won": over(lambda r: (0, len(getattr(r, "catalogue", ())))),
    r"mean bid, \$|balance(, \$, mean)?|final balance|spent|bid|tokens|mean contribution|"
    r"mean bid|mean number|number|price( gap| \d.*)?|round \d+|coins": over(moves),
    r"golds": over(lambda r: (r.players * moves(r)[0], r.players * moves(r)[1])),
    r"payoff( of .*)?": over(lambda r: r.payable),
    r"share of the prize": over(lambda r: r.stake if hasattr(r, "stake") else (0, 0)),
    r"profit( of an auction)?": over(lambda r: r.profits if hasattr(r, "profits") else (0, 0)),
    r"survived|share of the (people|prize)|share, or place between the ends": SHARE,
    r"price index|profit gain|solver's reply|response gap|.* surplus|unbid|rating|effect": FREE,
    r"gain( .*)?|advantage|payoff less equilibrium|change per round|density": FREE,
    r"Spearman's .*|rho|.* plan, .*": (-1, 1),
    r"|day|round|run( of a session)?|seat|rank.*|valuation|shot|auction|items sold|move": FREE,
    r"mean": FREE,  # of measures, each between its own ends, see tests of them
    r"request|claim": over(lambda r: tuple(e / getattr(r, "unit", 1) for e in r.bounds())),
    r"survivors of a game|coins offered .*|winning price|mean priority": FREE,
}
"""Between which ends what a column or an axis is called lies, from the rules of a run's games."""


def ends_of(name, rules):
    name = re.sub(r" \((higher|lower) is better\)$", "", name)
    found = [ends for pattern, ends in NAMES.items() if re.fullmatch(pattern, name)]
    if not found:  # nothing is possible of what is not in `NAMES`
        return math.inf, -math.inf
    return found[0](rules) if callable(found[0]) else found[0]


def beyond(values, ends):
    low, high = ends
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    slack = 1e-9 * max(1.0, *np.abs(values)) if len(values) else 0
    return values[(values < low - slack) | (values > high + slack)].tolist()


def wrong_in_figure(axes, rules):
    """Yield what a plot has beyond what is possible: its limits, or what is drawn."""
    for place, along in enumerate("xy"):
        name = getattr(axes, f"get_{along}label")()
        low, high = ends_of(name, rules)
        limits = sorted(getattr(axes, f"get_{along}lim")())
        margin = 0.06 * (limits[1] - limits[0]) + 0.35 * (high - low > 1)  # of marks and room
        if beyond(limits, (low - margin, high + margin)):
            yield f"axis {name!r} from {limits[0]:g} to {limits[1]:g}, possible {low:g} to {high:g}"
        drawn = [line.get_xydata() for line in axes.lines if line.get_transform() == axes.transData]
        bands = [c for c in axes.collections if isinstance(c, LineCollection | PolyCollection)]
        drawn += [path.vertices for band in bands for path in band.get_paths()]
        for data in drawn:
            data = np.asarray(data, np.float64).reshape(-1, 2)
            if odd := beyond(data[:, place], (low, high)):
                yield f"{name!r} drawn at {odd[:3]}, possible {low:g} to {high:g}"


def wrong_in_tables(folder, rules):
    """Yield the means and ends of intervals in CSV files that are beyond what is possible."""
    for file in sorted(folder.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                for name in row:
                    if f"{name} low" in row:
                        found = (row[name], row[f"{name} low"], row[f"{name} high"])
                        values, ends = [float(x) for x in found if x], ends_of(name, rules)
                        if odd := beyond(values, ends):
                            yield f"{file.name}: {name} {odd}, possible {ends}: {row}"


def wrong_in_summary(run, rules):
    """Yield the same of what Python and ``--json`` have."""
    for game, game_rules in zip(run.games.values(), rules, strict=True):
        plain = game.plain()
        for name in ("score", "payoff", "measure"):
            ends = {
                "score": ends_of("score", [game_rules]),
                "payoff": game.series["payoff"].ends,
                "measure": game.series["measured"].ends,
            }[name]
            for value in (found := plain[name] or {}), found.get("interval") or {}:
                some = [value[key] for key in ("mean", "low", "high") if value.get(key) is not None]
                if odd := beyond(some, ends):
                    yield f"{game.label}: {name} {odd}, possible {ends}"


def checked(run, folder, monkeypatch):
    """Write the report of a run and return what is wrong in it, and how many figures it has."""
    wrong, figures, rules, titles = [], 0, [], []
    with Records.open_readonly(run.path) as records:
        found = read(records, edition_of(records.config))
        rules += [game.rules.core for game in found.games]
        for paper in {id(paper): paper for paper in map(owner, found.games) if paper}.values():
            titles += [section.title for section in paper.sections(paper.read(found))]

    def printed(figure, files=True):
        nonlocal figures
        figures += 1
        for axes in figure.axes:
            wrong.extend(wrong_in_figure(axes, rules))
        return BLANK

    monkeypatch.setattr(canvas, "printed", printed)
    page = build([run.path], folder).read_text("utf-8")  # raises if a part cannot be made
    for title in (*titles, "Players and their replies", "Tokens and time", "Files"):
        assert f"<h2>{escape(title)}</h2>" in page
    wrong += [*wrong_in_tables(folder / "tables", rules), *wrong_in_summary(run, rules)]
    return [f"{run.path.stem}: {one}" for one in dict.fromkeys(wrong)], figures


BLANK = '<svg width="1" height="1" xmlns="http://www.w3.org/2000/svg"></svg>', b"\x89PNG"
SLICE = random.Random(7).sample(CASES, 14)
QUICK = "econ-arena/vanilla", "gamma-bench/fixed_strategies", "shall-we-talk/beauty_contest"
ROOMS = sorted({name.partition("/")[0] for name in FILES})


@pytest.mark.nightly
@pytest.mark.parametrize("room", ROOMS)
def test_every_file_ends_with_its_whole_page(night, record_property, tmp_path, monkeypatch, room):
    cases = [case for case in night(SLICE, CASES) if case[0].partition("/")[0] == room]
    wrong, figures = [], 0
    for name, every, episodes in cases:
        run = played(name, every, episodes, tmp_path)
        odd, drawn = checked(run, tmp_path / run.path.stem, monkeypatch)
        wrong, figures = wrong + odd, figures + drawn
    record_property("runs", len(cases))
    record_property("figures", figures)
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.nightly
@pytest.mark.parametrize("room", ROOMS)
def test_every_file_can_be_played_by_tiny(night, record_property, llm_games, room):
    """From the command line, with the file's own player."""
    every = [name for name in FILES if name.partition("/")[0] == room]
    names = night([name for name in every if name in QUICK], every)
    for number, name in enumerate(names):
        options = ["--episodes", 1, "--seat", "tiny", "--db", f"{number}.db", "--report", number]
        code, out, err = llm_games("run", name, *options, *few(load(name)["games"], name))
        assert code == 0, f"{name}: {out}{err}"
    record_property("files", len(names))


def few(games, name):
    kind = games[-1]["game"]
    alike = [game for game in games if game["game"] == kind][:LABELS]
    options = [word for game in alike for word in ("--game", game.get("label", kind))]
    cut = shorter(alike[0])
    options += [word for key, value in cut.items() for word in ("--param", f"{key}={value}")]
    return options if name in LONG else []
