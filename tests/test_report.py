import csv
import re
import subprocess
import sys
import warnings
from contextlib import ExitStack
from decimal import Decimal
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playing import legal_actions

import llm_games as lg
from llm_games.benchmarks.judge import intervals, means
from llm_games.benchmarks.judge.compare import compare
from llm_games.benchmarks.judge.means import FREE, POSITIVE
from llm_games.benchmarks.judge.paper import THIRD, Sketch, edition_of
from llm_games.benchmarks.judge.references import references
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.benchmarks.record.connection import NotARun
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import read
from llm_games.benchmarks.record.schema import AttemptRow, DecisionRow, StepRow
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import Overrides, players, resolve
from llm_games.benchmarks.show.page import (
    body,
    build,
    canvas,
    drawer,
    figures,
    headline,
    plot_style,
    report_page,
)
from llm_games.benchmarks.show.page.csv_files import Files
from llm_games.benchmarks.show.view.filter import Filter
from llm_games.errors import BadParameter, LLMGamesError, UnknownName
from llm_games.registry import rulebook
from llm_games.wrappers.clients.budget import Usage

OUTCOMES = ("valid", "valid", "valid", "unparsable", "out_of_range", "refused", "truncated")


def play(store, row, number, seats, rng, steps, asks):
    game = rulebook(row.game, **row.params)
    state, step = game.reset(int(rng.integers(2**31))), 0
    store.begin(number)
    while not state.over and step != steps:
        asked = np.flatnonzero(game.asked(state)).tolist()
        state, outcome = game.step(state, legal_actions(game, state, rng))
        record = {key: np.asarray(value).tolist() for key, value in outcome.record.items()}
        rewards, made = outcome.rewards.tolist(), []
        for seat in asked:
            reading = str(rng.choice(OUTCOMES)) if asks else "valid"
            made.append(DecisionRow(step, seat, 1, reading, reading != "valid", rewards[seat]))
            if asks:
                tokens = 300 + 40 * step
                reply = AttemptRow(
                    *(step, seat, 0, [], "{}", "stop", "", reading, "", tokens, 12),
                    *(float(rng.gamma(2.0, 0.4)), 7, f"{seats[seat]} at a server"),
                )
                store.add(reply, number)
        finished = np.flatnonzero(outcome.finished).tolist()
        for found in (StepRow(step, asked, record, rewards, finished).thin(), *made):
            store.add(found, number)
        step += 1
    if state.over:
        store.end(number)


def write_run(
    path,
    games=GAMES,
    seats="openai:some-model",
    episodes=2,
    steps=-1,
    title="A run",
    params=None,
    void=(),
    asks=True,
    label=None,
    config=None,
):
    """Write a run: `steps` stops each episode early, `void` lists the episodes to end as void."""
    rows = []
    paper = {"preset": "gamma_bench"} if games is GAMES else {}
    for name in games:
        game = rulebook(name, **(params or paper))
        names = [seats] * game.players if isinstance(seats, str) else seats
        rows.append((label or name, name, params or paper, names))
    store = Store.create(
        path, title, {"seed": 5} | (config or {}), rows, [list(range(episodes))] * len(rows)
    )
    rng = np.random.default_rng(3)
    for episode in store.episodes():
        play(store, episode.game, episode.id, episode.game.seats, rng, steps, asks)
        if episode.number in void:
            store.end(episode.id, "a reply broke the rules")
    store.close()
    return path


class Text(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.words, self.loads, self.skip = [], [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.skip = tag in ("style", "title", "desc")  # captions say the same
        wanted = ("src", "href", "xlink:href", "data", "action")
        self.loads += [v for k, v in attrs if k in wanted and not v.startswith("#")]
        if tag in ("script", "link", "iframe", "img", "object"):
            self.loads.append(tag)

    def handle_data(self, data):
        if not self.skip:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def page(*paths):
    out = build(list(paths), paths[0].parent)
    return out.read_text("utf-8")


@pytest.mark.slow
def test_a_whole_run_is_one_page_that_loads_nothing(tmp_path):
    html = page(write_run(tmp_path / "run.db", title="Eight games"))
    shown = Text(html)
    assert all(re.fullmatch(r"(figures|tables)/[^/:]+", link) for link in shown.loads)
    assert html.count("<svg") == 1 + 8 * 3 + 2 + 1
    assert "Rational here is an equilibrium: gives nothing" in shown.text
    assert "the law of valuations, though the prompt does not tell it" in shown.text
    for word in ("Eight games", "Gemini-1.5-Pro", "16 of 16 done", "Overall", "(14)", *GAMES):
        assert word in shown.text
    assert "not an LLM" not in shown.text
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_text_from_the_file_is_escaped_and_no_formula(tmp_path):
    evil = "<script>alert('$x^2$')</script>"
    path = write_run(
        tmp_path / "run.db", ["public_goods"], [evil] * 9 + ["rational"], 1, title=f"A {evil}"
    )
    html = page(path)
    assert "<script" not in html
    assert f"A {evil}" in Text(html).text
    assert "$x^2$" in html.split("<svg", 1)[1]
    assert "By player" in html


def test_references_take_no_rank(tmp_path):
    for seats, note in (("rational", "not an LLM"), (["tiny"] * 9 + ["openai:m"], "mixed seats")):
        path = write_run(tmp_path / f"{note}.db", ["divide_dollar"], seats, asks=False)
        text = Text(page(path)).text
        assert note in text
        assert "1 of 8 games" in text
        assert "(1" not in text.split("Beside the published")[1].split("Thirteen")[0]


@pytest.mark.parametrize("game", ["battle_royale", "pirate_game", "sealed_bid_auction"])
def test_an_unfinished_run_shows_what_there_is(tmp_path, game):
    text = Text(page(write_run(tmp_path / "run.db", [game], episodes=3, steps=1, void=(1,)))).text
    assert "This run is not finished: 2 of 3 episodes are left." in text
    assert "1 void episode has no score: a reply broke the rules." in text
    assert "0 of 3, 1 void, 2 running" in text
    assert not re.search(r"\bnan\b", text)


def test_a_single_episode_has_no_spread(tmp_path):
    path = write_run(tmp_path / "run.db", ["diners_dilemma"], "tiny", episodes=1)
    text = Text(page(path)).text
    assert re.search(r"diners_dilemma ! 1 of 1 \d+\.\d \d+\.\d \d+\.\d% ", text)
    assert "thin lines" not in text
    assert "band" not in text
    own = rows_of(tmp_path / "tables/means.csv")[0]
    assert (own["score, corrected n"], own["score, corrected low"]) == ("", "")


LOGIT = r"\(score, corrected, published, payoff of a seat\); log-t, n = 5 \(regret\)"
GAFFKE = "Gaffke, n = 5, no spread in 5 runs"


@pytest.mark.parametrize(
    ("game", "seats", "episodes", "said"),
    [
        ("public_goods", "random", 2, r"2 of 2 \d+\.\d ± \d+\.\d \d+\.\d to \d+\.\d "),
        ("public_goods", "random", 2, "logit-t, n = 2, rests on near-normal runs"),
        ("public_goods", "random", 5, f"95 % intervals: logit-t, n = 5 {LOGIT}"),
        ("diners_dilemma", "fixed:cheap", 5, rf"0\.0 ± 0\.0 0\.0 to 5\d\.\d .*{GAFFKE}"),
        ("diners_dilemma", "fixed:cheap", 5, r"100\.00 no spread"),
    ],
)
def test_means_say_what_their_intervals_rest_on(tmp_path, game, seats, episodes, said):
    raw = {"games": [{"game": game}], "episodes": episodes, "seats": [seats]}
    plan = resolve(parse(raw, "test"), "test", Overrides())
    path = tmp_path / "run.db"
    play_run(lambda: start(plan, path), plan, players(plan))
    text = Text(page(path)).text
    assert re.search(said, text)
    for method in ("logit-t", "log-t"):  # of moves, and of regret; two runs have no band
        band = f"interval of the mean at each point ({method}, n = {episodes} runs)"
        assert text.count(band) == (episodes > 2)
    row = rows_of(tmp_path / "tables/means.csv")[0]
    scores = [float(one["corrected"]) for one in rows_of(tmp_path / "tables/scores.csv")]
    found = intervals.score(scores)
    assert row["score, corrected method"] == found.method
    assert row["score, corrected n"] == str(episodes)
    ends = [float(row[f"score, corrected {end}"]) for end in ("low", "high")]
    assert ends == pytest.approx(found[:2])
    assert found.low <= float(row["score, corrected"]) <= found.high


def test_bands_are_intervals_at_each_point():
    table = np.array([[1.0, 2.0, np.nan, np.nan], [3.0, 2.0, 5.0, np.nan], [4.0, 2.0, 9.0, 7.0]])
    first, equal, two, one = canvas.points(table, FREE)
    assert first.interval[:2] == pytest.approx(intervals.money([1, 3, 4])[:2])
    assert first.interval[2:] == ("Student t", 3, "rests on near-normal runs")
    assert (equal.interval.method, equal.interval.note) == ("none", "no spread in 3 runs")
    assert two.interval[:2] == pytest.approx(intervals.money([5, 9])[:2])
    assert (one.mean, one.runs, one.interval) == (7.0, 1, None)
    for ends, method in ((POSITIVE, "log-t"), ((0, 10), "logit-t")):
        found, free = canvas.points(table, ends), canvas.points(table, FREE)
        assert found[0].interval[:2] == pytest.approx(intervals.money([1, 3, 4], *ends)[:2])
        assert found[0].interval.method == method
        assert found[0].interval.low > 0 > free[0].interval.low
    low, high = canvas.band(table, (0, 10))
    assert np.isnan([low[2:], high[2:]]).all()  # of two runs it would tell nothing
    assert 0 < low[0] < high[0] < 10
    beyond, _ = canvas.band(table, (2, 10))
    assert beyond[0] < 1  # a value beyond an end, as of broken rules: that end is none


def test_a_run_that_has_not_begun(tmp_path):
    text = Text(page(write_run(tmp_path / "run.db", ["el_farol_bar"], steps=0))).text
    assert "Nothing has been played yet." in text
    assert "0 of 2" in text


@pytest.mark.parametrize(
    ("game", "params"),
    [
        ("beauty_contest", {"ratio": "1", "players": 3}),
        ("beauty_contest", {"ratio": "4/3", "domain": "real", "decimals": 1}),
        ("public_goods", {"endowment": "carry"}),
        ("public_goods", {"ratio": "10"}),
        ("sealed_bid_auction", {"price": "second"}),
        ("pirate_game", {"quota": "majority", "gold": 5}),
        ("battle_royale", {"hit_rates": [50, 90], "players": 2}),
    ],
)
def test_other_settings_have_a_page_and_stay_off_the_leaderboard(tmp_path, game, params):
    text = Text(page(write_run(tmp_path / "run.db", [game], "rational", params=params))).text
    assert "published leaderboard" not in text
    assert not re.search(r"\bnan\b", text)
    assert str(next(iter(params))) in text


def test_several_runs_share_a_page(tmp_path):
    paths = [
        write_run(tmp_path / f"{name}.db", ["public_goods"], name, 1, title=f"Run of {name}")
        for name in ("rational", "tiny")
    ]
    html = page(*paths)
    assert "2 runs" in html
    assert "not an LLM, for reference" in html
    assert "a toy, to see how things work" in html
    assert 'class="own"' not in html  # in no order with the published rows


def test_references_are_those_of_the_run_that_they_stand_beside(tmp_path):
    """Also where runs share a label, but neither the parameters nor the edition of the scores."""
    few = write_run(tmp_path / "few.db", ["el_farol_bar"], episodes=2, asks=False)
    params = {"home": 3}
    other = write_run(tmp_path / "other.db", ["el_farol_bar"], params=params, asks=False)
    printed = {"scoring": "published"}
    old = write_run(tmp_path / "old.db", ["el_farol_bar"], asks=False, config=printed)
    with ExitStack() as opened:
        files = [opened.enter_context(Records.open_readonly(path)) for path in (few, other, old)]
        runs = [read(file, edition_of(file.config)) for file in files]
        beside = [{game.label: references(game, run.edition) for game in run.games} for run in runs]
        found = headline.sketches(runs, beside)
        assert [sketch.title for sketch in found] == ["Score, corrected", "Score, published"]
        for sketch, many in zip(found, ([0, 1], [2]), strict=True):
            drawn = sketch.draw.keywords["series"].items()
            offline = {cells[0] for name, cells in drawn if name.endswith("offline")}
            at = "el_farol_bar"
            assert offline == {
                means.mean_of(r.scores, (0, 100)) for n in many for r in beside[n][at]
            }


def test_results_are_open_and_have_no_dash_where_nothing_belongs(tmp_path, monkeypatch):
    """Reference rows fold no table away, and a game has no dash for another one's measure."""
    monkeypatch.setattr(report_page, "ROWS", 2)
    games = ["beauty_contest", "water_allocation"]
    html = page(write_run(tmp_path / "run.db", games, asks=False))
    [part] = re.findall(r'<section id="scores">.*?</section>', html, re.DOTALL)
    assert "<details>" not in part
    assert "offline" in part
    own = [row for row in re.findall(r"<tr>.*?</tr>", part, re.DOTALL) if "beauty_contest" in row]
    assert len(own) == 4
    assert not any(">–<" in row for row in own)


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    path = write_run(tmp_path / "run.db", ["public_goods"], "rational", 1, asks=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LLMGamesError, match=r"pip install 'llm-games\[report\]'"):
        build([path], tmp_path / "out.html")


def test_errors(tmp_path):
    with pytest.raises(BadParameter, match="at least one run"):
        build([], tmp_path)
    with pytest.raises(NotARun, match=r"nothing\.db"):
        build([tmp_path / "nothing.db"], tmp_path)
    path = write_run(tmp_path / "run.db", ["public_goods"], "rational", 1, steps=0)
    with pytest.raises(BadParameter, match="cannot be written"):
        build([path], path / "report.html")


def test_importing_the_report_loads_no_plotting():
    code = "import sys, llm_games.benchmarks.show.page; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# -- experiments, files, other games, two runs ---------------------------------------------------


def experiment(path, name, **overrides):
    given = Overrides(seats=["random"], **overrides)
    plan = resolve(parse(given.apply(load(name)), name), name, given)
    play_run(lambda: start(plan, path), plan, players(plan))
    return path


def rows_of(path):
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


@pytest.mark.figures
def test_figures_and_tables_lie_beside_the_page(tmp_path):
    path = write_run(tmp_path / "run.db", ["public_goods"], label="a: b/../c <d>", asks=False)
    links = Text(page(path)).loads
    assert {"figures/a-b-..-c-d.svg", "figures/a-b-..-c-d.png"} <= set(links)
    for link in links:
        content = (tmp_path / link).read_bytes()
        head = {".png": b"\x89PNG", ".svg": b"<?xml", ".csv": b"run,"}[Path(link).suffix]
        assert content.startswith(head)
    assert len(list((tmp_path / "figures").iterdir())) == 2 * (1 + 3)
    scores = rows_of(tmp_path / "tables/scores.csv")
    assert [row["episode"] for row in scores] == ["0", "1"]
    assert 0 <= float(scores[0]["corrected"]) <= 100
    assert len(rows_of(tmp_path / "tables/rounds.csv")) == 2 * 20
    types = rows_of(tmp_path / "tables/type_fits.csv")
    assert [row["player"] for row in types] == [
        row["player"] for row in rows_of(tmp_path / "tables/players.csv")
    ]


def test_labels_that_look_alike_have_files_of_their_own():
    files = Files()
    assert files.add("figures", "a b", ("svg", "1")) == ["figures/a-b.svg"]
    assert files.add("figures", "a/b", ("svg", "2")) == ["figures/a-b-2.svg"]
    assert files.add("figures", "..", ("svg", "3")) == ["figures/figure.svg"]


@pytest.mark.slow
def test_settings_stand_beside_published_runs(tmp_path):
    path = experiment(tmp_path / "run.db", "gamma-bench/variants", games=["pirate_game"])
    text = Text(page(path)).text
    for row in ("4 coins", "5 coins", "100 coins", "400 coins"):
        assert row in text
    assert re.search(r"400 coins 1 [\d.]+ [\d.]+ 83\.6", text)
    assert re.search(
        r"mean ± std over settings [\d.]+ ± [\d.]+ [\d.]+ ± [\d.]+ 71\.3 ± 16\.6", text
    )
    assert "published leaderboard" not in text


@pytest.mark.slow
def test_settings_by_games(tmp_path):
    games = ["divide_dollar", "public_goods"]
    text = Text(page(experiment(tmp_path / "run.db", "gamma-bench/reasoning", games=games))).text
    assert re.search(r"setting divide dollar public goods Overall default [\d.]+ 68\.1", text)
    assert re.search(r"persona mathematician [\d.]+ 69\.2 [\d.]+ 25\.6", text)


@pytest.mark.slow
def test_fixed_strategies(tmp_path):
    text = Text(page(experiment(tmp_path / "run.db", "gamma-bench/fixed_strategies"))).text
    assert re.search(r"one bids 91 fixed:91 mean bid( \d+\.\d){5} [+-]\d\.\d\d", text)
    assert "published leaderboard" not in text


@pytest.mark.parametrize(
    ("game", "more", "says"),
    [
        ("sealed_bid_auction", {}, "valuations"),
        ("sealed_bid_auction", {"params": {"valuation_draw": "random"}}, ""),
        ("water_allocation", {"params": {"days": 2, "supplies": (12, 13)}}, "supplies"),
        ("public_goods", {}, ""),
        ("battle_royale", {"given": {"rolls": 50}}, "chance, as it was given"),
    ],
)
def test_scores_of_a_draw_that_repeats_say_so(game, more, says, tmp_path, llm_games):
    found = lg.run({"title": "Draws", "episodes": 2, "seats": ["random"],
                    "games": [{"game": game, **more}]}, db=tmp_path / "run.db")  # fmt: skip
    sentence = f"{game}: All episodes have the same {says}: intervals hold for these alone."
    text = Text(page(found.path)).text
    code, out, _ = llm_games("resume", str(found.path))
    shown = " ".join(out.split())
    assert code == 0
    assert ((sentence in text), (sentence in shown)) == (bool(says), bool(says))
    assert says or ("the same" not in shown and "hold for these alone" not in text)
    board = " ".join(llm_games("leaderboard", str(found.path))[1].split())
    assert (sentence in board) == bool(says)


def test_scoring_is_chosen_by_the_run_or_the_report(tmp_path):
    path = write_run(tmp_path / "run.db", ["sealed_bid_auction"], "rational", asks=False)
    assert "score, corrected" in Text(page(path)).text
    out = build([path], tmp_path, "v4")
    assert "score, v4" in Text(out.read_text("utf-8")).text
    with pytest.raises(UnknownName):
        build([path], tmp_path, "v5")


def test_published_settings_have_a_place_on_the_leaderboard(tmp_path):
    path = experiment(tmp_path / "run.db", "gamma-bench/published", games=["diners_dilemma"])
    text = Text(page(path)).text
    assert "1 of 8 games" in text
    assert "score, published" in text


BUDGET = {"assets": 1000, "players": 3}


@pytest.mark.parametrize(
    ("game", "params"),
    [("water_allocation", {}), ("english_auction", {}), ("sealed_bid_auction", BUDGET)],
)
def test_games_outside_the_benchmark_have_no_scores(tmp_path, game, params):
    text = Text(page(write_run(tmp_path / "run.db", [game], "random", params=params))).text
    assert "γ-Bench scores" not in text
    assert "leaderboard" not in text
    assert "payoff of a seat" in text
    assert not re.search(r"\bnan\b", text)


def test_tokens_and_costs_are_those_of_the_books(tmp_path):
    prices = {"m": {"input": 2.0, "output": 0.0}}
    path = write_run(tmp_path / "run.db", ["battle_royale"], episodes=1, config={"prices": prices})
    with Store.open(path) as store:
        for seat, calls in (("", 1), ("battle_royale/player_0", 5), ("battle_royale/player_1", 7)):
            store.spend("m", seat, Usage(calls, 1, 100 * calls, 10, 1.0, Decimal(calls) / 3, 4, 5))
    text = Text(page(path)).text
    assert "calls 13 tokens in / out 1,300 / 30 cost 4.3333" in text
    assert re.search(r"greetings – 1 100 10 0.3333", text)
    assert re.search(r"battle_royale \d+ 12 1,200 20 4.0000 ", text)
    [row] = rows_of(tmp_path / "tables/players.csv")
    assert Decimal(row["cost"]) == pytest.approx(Decimal(4))
    assert [row[f"tokens_{kind}"] for kind in ("in", "out", "cached", "reasoning")] == [
        *("1200", "20", "8", "10")
    ]


def test_two_runs_compared(tmp_path):
    paths = [
        write_run(tmp_path / f"{name}.db", ["public_goods"], name, asks=False)
        for name in ("rational", "random")
    ]
    text = Text(build(paths, tmp_path, comparing=True).read_text("utf-8")).text
    assert re.search(r"Comparison A is A run \(rational\).* public_goods score 2 ", text)
    with pytest.raises(BadParameter, match="takes 2 to 26 runs, got 1"):
        build(paths[:1], tmp_path, comparing=True)


def test_runs_are_each_compared_with_the_first(tmp_path):
    params = {"players": 3, "rounds": 3}
    paths = []
    for seats in (["rational", "random"], ["random", "random"], ["random", "rational"]):
        game = {"game": "public_goods", "params": params, "seats": [*seats, "random"]}
        paths.append(tmp_path / f"{len(paths)}.db")
        lg.run({"title": "A run", "episodes": 4, "games": [game]}, db=str(paths[-1]))
    path = build(paths, tmp_path, comparing=True, baselines=False)
    text = Text(path.read_text("utf-8")).text
    assert "A is A run (0), B is A run (1), C is A run (2); scores are" in text
    for name, path in zip("BC", paths[1:], strict=True):
        found = compare(paths[0], path, name=name, among=2)
        [game] = found.games
        said = " ".join(found._written(game.payoffs, 2)[:7])
        assert f"{name} − A interval" in text
        assert said in text
        alone = compare(paths[0], path)
        assert found.level == alone.level / 2
        assert game.payoffs.interval.high > alone.games[0].payoffs.interval.high
    assert text.count("2 runs are compared with A, each at 0.05 / 2 (Bonferroni).") == 2
    assert "public_goods, A, B and C by round" in text
    assert "with the 97.5 % interval" in text


def test_players_are_followed_to_their_seats(tmp_path):
    seats = [*["random"] * 9, "fixed:3"]
    raw = {"games": [{"game": "public_goods", "label": "moved", "order": "shuffled"}]}
    plan = resolve(parse(raw | {"episodes": 4, "seats": seats}, "test"), "test", Overrides())
    path = tmp_path / "run.db"
    play_run(lambda: start(plan, path), plan, players(plan))
    text = Text(page(path)).text
    rows = [row for row in rows_of(tmp_path / "tables/rounds.csv") if row["player"] == "fixed:3"]
    assert len(rows) == 4 * 20
    assert {row["value"] for row in rows} == {"3.0"}
    assert re.search(r"moved fixed:3 mean contribution( \d+\.\d [\d.]+ to [\d.]+){5}", text)
    payoffs = {row["player"]: row for row in rows_of(tmp_path / "tables/payoffs.csv")}
    assert [payoffs[name]["payoff n"] for name in ("random", "fixed:3")] == ["4", "4"]


# -- links, sizes, what a figure says of itself ----------------------------------------------------


@pytest.mark.figures
def test_numbers_and_points_lead_to_their_decisions(tmp_path):
    seats = [*["rational"] * 9, "openai:m & co"]
    path = write_run(tmp_path / "run.db", ["public_goods"], seats, 1, label="a & b")
    with Records.open_readonly(path) as file:
        html = str(body(file, "/run/ab12/", baselines=False))
    assert "<script" not in html
    assert "style=" not in html  # a strict policy refuses it
    addresses = {unescape(one) for one in re.findall(r'<a href="(/[^"]*)"', html)}
    assert not re.findall(r"<a [^>]*></a>", html)
    filters = [Filter.of(parse_qsl(urlsplit(one).query)) for one in addresses]
    assert {urlsplit(one).path for one in addresses} == {"/run/ab12/decisions"}
    assert {game for one in filters for game in one.game} == {"a & b"}
    assert {player for one in filters for player in one.player} == {"rational", "openai:m & co"}
    assert Filter(game=("a & b",), player=("openai:m & co",)) in filters  # a payoff
    assert Filter(player=("openai:m & co",), outcome=("truncated",)) in filters  # a count
    assert Filter(game=("a & b",), sort="-regret") in filters
    svg = "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    drawn = {unescape(one) for one in re.findall(r'<a href="(/[^"]*)"', svg)}
    places = [Filter.of(parse_qsl(urlsplit(one).query)) for one in drawn]
    assert {(1,), (2,), (3,)} <= {one.round for one in places}
    assert {(seat,) for seat in range(10)} <= {one.seat for one in places}
    assert re.search(r"<svg role=\"group\"[^>]*>", svg)  # a picture cannot hold links
    assert all('pointer-events="all"' in one for one in re.findall(r"<a [^>]*>", svg))


@pytest.mark.figures
def test_figures_and_tables_say_what_they_are(tmp_path):
    html = page(write_run(tmp_path / "run.db", ["divide_dollar"], "random", asks=False))
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        title, about = re.search(r'aria-labelledby="(\S+) (\S+)"', svg).groups()
        assert re.search(rf'<title id="{title}">[^<]+</title><desc id="{about}">[^<]+</desc>', svg)
    assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", html))
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([\w-]+)"', html.split("</nav>")[0])) <= set(ids)
    assert "decisions?" not in html


def test_twelve_players_have_twelve_looks():
    looks = plot_style.make_looks(12)
    assert len({(look.colour, str(look.dash)) for look in looks}) == 12
    assert len({look.mark for look in looks}) == 12


@pytest.mark.figures
def test_names_that_begin_with_a_line_stand_in_a_legend():
    def draw(axes):
        axes.plot([1, 2], [1, 2], label="_bob")
        axes.bar([1, 2], [1, 2], label="__x")
        axes.scatter([1, 2], [1, 2])
        axes.plot([1, 2], [2, 1], label="eve")
        return "Lines."

    found = []
    drawn = canvas.picture("f", "F", draw, THIRD, linked=found.append)
    [axes] = found
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"_bob", "__x", "eve"}
    assert "_bob" in drawn.svg
    assert [line.get_label() for line in axes.get_lines()] == ["_bob", "eve"]


@pytest.mark.figures
def test_long_names_in_a_legend_leave_room_for_the_plot():
    names = [f"{number} {'long name ' * 4}"[:40] for number in range(3)]

    def draw(axes):
        for name in names:
            axes.plot([1, 2], [1, 2], label=name)
        return "Lines."

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert canvas.picture("f", "F", draw, THIRD, files=False).inline


def test_a_figure_without_anything_is_left_out_and_said_so(tmp_path, monkeypatch):
    path = write_run(tmp_path / "run.db", ["el_farol_bar"], "random", asks=False)
    blank = Sketch("Nothing at all", lambda axes: str(axes.axhline(1) and "Nothing."))
    found = figures.moves
    monkeypatch.setattr(figures, "moves", lambda *about: [*found(*about), blank])
    shown = Text(page(path))
    assert "Left out, since there is nothing to draw: Nothing at all." in shown.text
    assert not [link for link in shown.loads if "nothing" in link]


def test_a_run_of_many_settings_has_a_page_of_its_results(tmp_path):
    games = [{"game": "el_farol_bar", "label": f"bar {i}"} for i in range(17)]
    raw = {"episodes": 1, "seats": ["random"], "games": games}
    plan = resolve(parse(raw, "test"), "test", Overrides())
    path = tmp_path / "run.db"
    play_run(lambda: start(plan, path), plan, players(plan))
    build([path], tmp_path, baselines=False)
    text = Text((tmp_path / "report.html").read_text("utf-8")).text
    assert "The figures of 17 single settings are too many for a page" in text
    assert "bar 16 1 of 1" in text
    build([path], tmp_path, baselines=False, only=["bar 3", "bar 9"])
    text = Text((tmp_path / "report.html").read_text("utf-8")).text
    assert "too many" not in text
    assert "bar 9 1 of 1" in text
    assert "bar 16" not in text
    with pytest.raises(UnknownName, match="bar 99"):
        build([path], tmp_path, only=["bar 99"])


@pytest.mark.figures
def test_a_page_has_room_for_so_many_figures(tmp_path, monkeypatch):
    path = write_run(tmp_path / "run.db", ["el_farol_bar"], "random", asks=False)
    monkeypatch.setattr(drawer, "ROOM", 30_000)
    html = page(path)
    assert len(html) < 80_000
    text = Text(html).text
    assert "In its file, for want of room." in text
    assert len(list((tmp_path / "figures").iterdir())) == 2 * html.count("<figure")


def test_a_sample_of_conversations_is_shown_as_it_was(tmp_path):
    evil = "<img src=x onerror=alert(1)>\u202e" + "x" * 5000
    path = write_run(tmp_path / "run.db", ["public_goods"], episodes=1, steps=2)
    with Store.open(path) as store:
        [episode] = store.episodes()
        tries = AttemptRow(0, 0, 1, [], evil, "stop", "", "valid", "", 1, 1, 0.1, 7, "m")
        store.add(tries, episode.id)
    html = build([path], tmp_path, baselines=False, conversations=40).read_text("utf-8")
    assert "<img" not in html
    assert "\u202e" not in html
    assert "onerror=alert(1)&gt;" in html
    assert "(1,029 characters more)" in html
    assert html.count("openai:some-model: public_goods, episode 0, step") == 20
    html = build([path], tmp_path, baselines=False).read_text("utf-8")
    assert "onerror" not in html
    assert "llm-games view run.db" in html
