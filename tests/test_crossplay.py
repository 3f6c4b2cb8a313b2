"""Cross-play: in batches, from a file with models, on a page, and PSRO over it."""

import json
import re
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest
from playing import each_row
from typer.testing import CliRunner

import llm_games as lg
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.crossplay import (
    ALL,
    ONE,
    Cross,
    chosen,
    crossplay,
    lineup,
    places,
    seating,
)
from llm_games.baselines.metagame import lineups
from llm_games.baselines.players import make_player
from llm_games.benchmarks.papers.cross_play.page import cross_of
from llm_games.benchmarks.papers.cross_play.solved import Crossed
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.benchmarks.run.estimate import estimate
from llm_games.benchmarks.run.plan import Overrides, plan_of, players
from llm_games.benchmarks.show.cli import app
from llm_games.benchmarks.show.page import build
from llm_games.errors import BadParameter, DiskFull
from llm_games.registry import rulebook

RULES = ["rational", "random", "truthful", "shade:0.5"]
SEALED = {"game": "sealed_bid_auction", "players": RULES, "episodes": 7}
SEALED["params"] = {"players": 3, "rounds": 1}
TINY = {
    "game": "public_goods",
    "players": ["rational", {"player": "tiny", "name": "toy"}],
    "params": {"players": 2, "rounds": 1},
    "episodes": 2,
}


def seated_as(counts, episodes):
    """Return who sits where in each episode of a line-up, ``(seats, episodes)``."""
    return places(counts)[seating(counts, episodes)]


def cross_from(file):
    with Records.open_readonly(file) as records:
        return cross_of(games(records))


@pytest.fixture(scope="module")
def sealed_file(tmp_path_factory):
    return lg.run(SEALED, tmp_path_factory.mktemp("sealed") / "sealed.db").path


@pytest.fixture(scope="module")
def sealed(sealed_file):
    return cross_from(sealed_file)


# -- batches ---------------------------------------------------------------------------------------


def test_a_batch_is_one_game_after_another():
    rules = rulebook("sealed_bid_auction", players=3, rounds=2)
    seeds, names = [5, 9, 13, 2], RULES[:3]
    cross = crossplay(rules, names, seeds)
    assert cross.which == ALL
    assert cross.counts.tolist() == lineups(3, 3).tolist()
    for counts, paid in zip(cross.counts, cross.paid, strict=True):
        for number, seed in enumerate(seeds):
            sits = seated_as(counts, len(seeds))[:, number]
            one = play_rules(rules, [names[who] for who in sits], [seed]).payoffs[:, 0]
            for who in range(3):
                own = one[sits == who]
                want = own.mean() if len(own) else np.nan
                assert paid[who, number] == pytest.approx(want, nan_ok=True)


def test_everybody_has_every_seat_equally_often():
    for counts in lineups(3, 3):
        sits = seated_as(counts, 12)
        for who, many in enumerate(counts):
            assert (sits == who).sum(axis=1).tolist() == [12 * many // 3] * 3


def test_what_is_played_with_many_players():
    assert chosen(4, 2)[0] == chosen(10, 3)[0] == ALL
    which, counts = chosen(6, 8)
    assert (which, counts.shape) == (ONE, (36, 6))
    assert sorted(counts.max(axis=1).tolist()) == [7] * 30 + [8] * 6
    with pytest.raises(BadParameter, match='line-ups are "all" or "one", got \'some\''):
        chosen(3, 3, "some")
    with pytest.raises(BadParameter, match="more than 20,000"):
        chosen(10, 20, ALL)


def test_one_among_others_is_a_game_of_two():
    rules = rulebook("public_goods", players=4, rounds=1)
    names, seeds = ["rational", "cooperative", "fixed:5"], range(4)
    one, every = (crossplay(rules, names, seeds, which) for which in (ONE, ALL))
    assert len(one.counts) == 9
    assert one.meta().players == 2
    assert one.meta().matrix().tolist() == every.meta().matrix().tolist()


def test_a_mixture_is_met_as_the_meta_game_has_it(sealed):
    mixture = np.array([0.4, 0.3, 0.2, 0.1])
    paid = sealed.against(mixture)
    assert paid.shape == (4, 7)
    assert paid.mean(axis=1) == pytest.approx(sealed.meta().against(mixture))


def test_void_episodes_count_as_the_mean():
    earned = np.array([[[1.0, 3.0]] * 2, [[2.0, np.nan], [4.0, np.nan]], [[5.0, 5.0]] * 2])
    cross = Cross(("a", "b"), ALL, lineups(2, 2), earned)
    assert cross.void == 1
    assert cross.meta().matrix().tolist() == [[2.0, 2.0], [4.0, 5.0]]
    assert cross.ahead.tolist() == [[[0, 0], [1, 0]], [[0, 0], [0, 0]]]
    earned[1] = np.nan
    with pytest.raises(BadParameter, match="all episodes of a, b are void"):
        Cross(("a", "b"), ALL, lineups(2, 2), earned).meta()


def test_who_cannot_be_played_in_a_batch():
    rules = rulebook("public_goods", players=2)
    with pytest.raises(BadParameter, match="two players or more, each once"):
        crossplay(rules, ["rational", "rational"], [1])
    with pytest.raises(BadParameter, match="players that ask no model"):
        crossplay(rules, ["rational", "tiny"], [1])


# -- from a file -----------------------------------------------------------------------------------


def test_a_run_records_what_line_ups_earn(sealed):
    seeds = plan_of(SEALED).games[0].seeds
    rules = rulebook("sealed_bid_auction", **SEALED["params"])
    assert np.array_equal(sealed.earned, crossplay(rules, RULES, seeds).earned)


@pytest.mark.slow
def test_models_are_asked_once(tmp_path):
    file = tmp_path / "cross.db"
    with pytest.raises(RunStopped, match="budget"):
        lg.run(TINY, file, budget_calls=3)
    assert len(answers(file)) == 2  # after the greeting
    lg.resume(file, budget_calls=100)
    assert len(answers(file)) == 2 * (2 + 1)  # of two seats, and of one
    lg.run(TINY, tmp_path / "other.db")
    whole, other = cross_from(file), cross_from(tmp_path / "other.db")
    assert np.array_equal(other.paid, whole.paid, equal_nan=True)
    lg.resume(file, episodes=3, budget_calls=100)
    longer = cross_from(file)
    assert np.array_equal(longer.paid[..., :2], whole.paid, equal_nan=True)


def answers(file):
    with Records.open_readonly(file) as records:
        return [row["text"] for _, row in records.table("attempts")]


class Own:
    name = "mine"

    def __call__(self, observation, view):
        return 20


def test_a_player_of_ones_own(tmp_path):
    lg.run(TINY | {"players": ["rational", Own()]}, tmp_path / "own.db")
    assert cross_from(tmp_path / "own.db").meta().matrix()[1, 1] == 40


@each_row(
    ("change", "message"),
    [
        ({"players": ["rational"]}, "at least 2 items"),
        ({"players": ["rational", "rational"]}, "two players are called 'rational'"),
        ({"players": ["rational", "rationel"]}, "did you mean 'rational'"),
        ({"player": "tiny"}, "player = 'tiny'"),
        ({"games": []}, "there is no key games"),
        ({"seats": ["random"]}, "its players take all seats in turn"),
        ({"isomorphs": 2}, "who plays with each is told in plain words"),
        ({"lineups": "most"}, "lineups = 'most'"),
        ({"game": "public_good"}, "there is no game 'public_good'"),
        ({"params": {"rounds": 0}}, "rounds"),
    ],
)
def test_what_cannot_be_played_is_said_first(change, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        lg.run(SEALED | change, tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_what_is_somebodys_own_has_no_place():
    about = {"game": "english_auction", "players": ["rational", "random"]}
    with pytest.raises(ConfigError, match="give one value for all"):
        plan_of(about | {"params": {"players": 2, "budgets": [3000, 4000]}})


def test_what_is_given_beside_a_file_wins():
    over = Overrides(episodes=3, seed=5, params={"rounds": 2})
    games = plan_of(SEALED, over).games
    assert {len(game.seeds) for game in games} == {3}
    assert {game.params["rounds"] for game in games} == {2}
    assert len({tuple(game.seeds) for game in games}) == 1


def test_uneven_seats_are_said():
    pirates = {"game": "pirate_game", "players": ["rational", "random"], "params": {"players": 4}}

    def uneven(raw):
        return "".join(game.uneven() for game in plan_of(raw).games)

    assert not uneven(pirates | {"episodes": 8})
    assert "have not had each seat equally often" in uneven(pirates | {"episodes": 6})
    assert not uneven(SEALED | {"episodes": 7})  # where no seat is worth more


# -- what it came to -------------------------------------------------------------------------------


def test_standings_know_who_is_better(sealed):
    crossed = Crossed(sealed)
    rows = {row["player"]: row for row in crossed.standings().dicts()}
    assert [*rows][-1] == "truthful"  # who gains nothing
    assert rows["truthful"]["payoff"] == 0
    assert rows["rational"]["rating above random"] > rows["truthful"]["rating above random"]
    assert rows["random"]["rating above random"] == 0
    low, high = (rows["rational"][f"payoff {end}"] for end in ("low", "high"))
    assert low < rows["rational"]["payoff"] < high
    assert sum(cell.mean for cell in crossed.alpha_rank) == pytest.approx(1)
    assert all(cell.interval.low <= cell.mean <= cell.interval.high for cell in crossed.alpha_rank)


@each_row("shared", [0.0, 0.8])
def test_ratings_and_their_intervals_hold_the_truth(shared):
    """Of seats drawn from Plackett and Luce's model, with chance that line-ups may share."""
    truth, counts, episodes = np.array([0, 0.5, 1, 1.5]), lineups(4, 3), 20
    place = [seating(row, episodes) for row in counts]
    sits = [seated_as(row, episodes) for row in counts]
    means, held = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        common = rng.gumbel(size=(3, episodes))
        earned = np.empty((len(counts), 3, episodes))
        for row, (at, who) in enumerate(zip(place, sits, strict=True)):
            same, own = rng.random(who.shape) < shared, rng.gumbel(size=who.shape)
            paid = np.where(same, common, own) + truth[who]
            np.put_along_axis(earned[row], at, paid, axis=0)
        crossed = Crossed(Cross(("random", "a", "b", "c"), ALL, counts, earned))
        cells = [crossed.rating(name) for name in "abc"]
        means.append([cell.mean for cell in cells])
        ends = zip(truth[1:], (cell.interval for cell in cells), strict=True)
        held += [found.low <= own <= found.high for own, found in ends]
    assert np.mean(means, axis=0) == pytest.approx(truth[1:], abs=0.2 if shared else 0.1)
    assert np.mean(held) > 0.92


def test_of_several_seats_each_meets_each():
    """Two of a kind at a table: one ahead of the third seat, one behind it."""
    earned = np.array([[[3.0], [1.0], [2.0]], [[5.0], [5.0], [5.0]]])
    cross = Cross(("a", "b"), ALL, np.array([[2, 1], [1, 2]]), earned)
    assert cross.ahead.tolist() == [[[0, 1], [1, 0]]]  # a half each, and a tie
    assert cross.paid[:, :, 0].tolist() == [[2, 2], [5, 5]]


def test_one_among_others_has_no_correlated_equilibria():
    rules = rulebook("public_goods", players=4, rounds=1)
    crossed = Crossed(crossplay(rules, ["rational", "cooperative"], range(4), ONE))
    assert [grid.name for grid in crossed.solved()] == ["equilibria"]


def test_nobody_gains_over_the_equilibrium(sealed):
    crossed = Crossed(sealed)
    assert crossed.equilibria
    assert min(cell.mean for cell in crossed.losses) == pytest.approx(0, abs=1e-6)
    least, most = crossed.correlated[1].payoff, crossed.correlated[0].payoff
    assert all(least - 1e-6 <= one.payoff <= most + 1e-6 for one in crossed.equilibria)


def test_its_page(sealed, sealed_file, tmp_path):
    path = build([sealed_file], tmp_path / "out")
    text = path.read_text("utf-8")
    for words in ("Standings", "Each with each", "Nash equilibria", "shade:0.5", "α-rank"):
        assert words in text
    assert "src=" not in text
    names = {file.stem for file in (tmp_path / "out" / "tables").iterdir()}
    assert names >= {"standings", "matrix", "equilibria", "correlated", "ranked", "lineups"}
    assert not names & {"skill", "references"}
    rows = (tmp_path / "out" / "tables" / "lineups.csv").read_text("utf-8").splitlines()
    assert len(rows) == 1 + sum((counts > 0).sum() for counts in sealed.counts)


def test_a_part_of_the_line_ups_is_not_solved(tmp_path):
    """As in a record of 0.8, which has only those with a model."""
    done = lg.run(SEALED, tmp_path / "part.db", games=["3 × random", "2 × random, truthful"])
    assert [*done.tables] == ["lineups"]
    text = build([done.path], tmp_path / "out").read_text("utf-8")
    assert "not all of its line-ups have ended" in text


def test_a_full_disk_leaves_the_page_that_was_there(sealed_file, tmp_path, monkeypatch):
    from llm_games.benchmarks.show.page import report_page as pages

    path, whole, left = build([sealed_file], tmp_path), pages.write_whole, [3]
    before = path.read_bytes()

    def full(file, content):
        left[0] -= 1
        if not left[0]:
            raise DiskFull("no room is left")
        return whole(file, content)

    monkeypatch.setattr(pages, "write_whole", full)
    with pytest.raises(BadParameter, match=r"cannot be written to .*: no room is left"):
        build([sealed_file], tmp_path)
    assert path.read_bytes() == before
    linked = re.findall(r'href="((?:figures|tables)/[^"]+)"', path.read_text("utf-8"))
    assert linked
    assert all((tmp_path / unquote(one)).exists() for one in linked)


BIDS_FILE = """
game = "sealed_bid_auction"
players = ["rational", "random"]
episodes = 4
params = {players = 3, rounds = 1}
"""


def test_its_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bids.toml").write_text(BIDS_FILE)
    call = lambda *more: CliRunner().invoke(app, ["run", "bids.toml", *more])  # noqa: E731
    result = json.loads(call("--json", "--episodes", "6", "--db", "a.db").stdout)
    tables = result["tables"]
    assert {row["player"] for row in tables["standings"]} == {"rational", "random"}
    assert len(tables["lineups"]) == 6
    shown = call("--db", "b.db", "--report", "out")
    assert (shown.exit_code, (tmp_path / "out" / "report.html").exists()) == (0, True)
    assert "loses to it" in shown.stdout
    plan = json.loads(call("--dry-run", "--json").stdout)["plan"]
    assert [len(game["seeds"]) for game in plan["games"]] == [4] * 4
    with pytest.raises(BadParameter, match="llm-games run FILE"):
        CliRunner().invoke(app, ["crossplay", "bids.toml"], catch_exceptions=False)


@pytest.mark.slow
def test_a_dry_run_counts_calls():
    plan = plan_of(TINY | {"episodes": 5})
    rows = estimate(plan, players(plan))
    assert sum(row.low.calls for row in rows) == 5 * (2 + 1)


def test_lineups_in_words():
    assert lineup(["a", "b", "c"], np.array([2, 0, 1])) == "2 × a, c"


# -- PSRO ------------------------------------------------------------------------------------------


BIDS = {"game": "sealed_bid_auction", "param": ["players=2", "rounds=1"]}
BIDS |= {"episodes": 40, "steps": 6}


@pytest.mark.slow
def test_psro_goes_on_as_if_it_had_never_stopped(tmp_path, monkeypatch):
    from llm_games.baselines.training import psro
    from llm_games.baselines.training.harness import curve

    about, by_rule = BIDS | {"oracle": "rules"}, psro.by_rule
    whole = psro.train(psro.PSROOptions(**about, folder=tmp_path / "whole"))
    gains = curve(tmp_path / "whole")["psro__gain"][1]
    assert gains[0] > 0 >= gains[-1]

    def stopped(population):
        if len(population.names) == 2:
            raise KeyboardInterrupt
        return by_rule(population)

    monkeypatch.setattr(psro, "by_rule", stopped)
    with pytest.raises(KeyboardInterrupt) as told:
        psro.train(psro.PSROOptions(**about, folder=tmp_path / "parts"))
    assert "psro" in told.value.__notes__[0]
    monkeypatch.setattr(psro, "by_rule", by_rule)
    parts = psro.train(psro.PSROOptions(**about, folder=tmp_path / "parts", resume=True))
    assert np.array_equal(parts.payoffs, whole.payoffs)
    for name, points in curve(tmp_path / "whole").items():
        assert np.array_equal(curve(tmp_path / "parts")[name], points)


@pytest.mark.slow
def test_a_reply_is_kept_before_the_population_plays(tmp_path, monkeypatch):
    """Ctrl-C twice between two rounds: what was trained for a round is not trained again."""
    from llm_games.baselines.training import psro

    about, by_rule, made = BIDS | {"oracle": "rules"}, psro.by_rule, []

    class Stopped(psro.Population):
        def _meta_game(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(psro, "Population", Stopped)
    with pytest.raises(KeyboardInterrupt):
        psro.train(psro.PSROOptions(**about, folder=tmp_path))
    monkeypatch.undo()
    assert json.loads((tmp_path / "state").read_bytes())[1] == 1
    monkeypatch.setattr(psro, "by_rule", lambda some: made.append(some.names) or by_rule(some))
    psro.train(psro.PSROOptions(**about, folder=tmp_path, resume=True))
    assert min(map(len, made)) == 2


@pytest.mark.slow
def test_exact_replies_end_in_equilibrium(tmp_path, capsys):
    from llm_games.baselines.training import psro
    from llm_games.baselines.training.harness import curve

    about = {"game": "el_farol_bar", "param": ["players=3", "rounds=1"], "episodes": 20}
    options = psro.PSROOptions(**about, oracle="exact", folder=tmp_path)
    psro.train(options)
    gains = curve(tmp_path)["psro__gain"][1]
    assert gains[0] > 1
    assert gains[-1] == 0
    player = re.search(r"player +(\S+)", capsys.readouterr().out)[1]
    rules = rulebook("el_farol_bar", players=3, rounds=1)
    whole = psro.Whole(rules)
    mixed = make_player(player, rules)
    assert whole.reply(mixed.players, mixed.weights / mixed.weights.sum())[1] < 1e-3  # four digits
    names = [*(one.name for one in mixed.players), "rational"]
    meta_game = whole.meta_game({name: make_player(name, rules) for name in names[:2]})
    played = crossplay(rules, names[:2], range(6)).meta()  # those that draw nothing
    assert meta_game.payoffs == pytest.approx(played.payoffs, nan_ok=True)


def test_to_whom_no_reply_is_exact(monkeypatch):
    from llm_games.baselines.training import psro

    rules = rulebook("public_goods", players=2, rounds=1)
    with pytest.raises(BadParameter, match="players that follow a rule, which tiny does not"):
        psro.Whole(rules).strategy(make_player("tiny", rules))
    monkeypatch.setattr(psro, "Tree", lambda _: SimpleNamespace(deals=256))
    with pytest.raises(BadParameter, match="which no room says of public_goods"):
        psro.Whole(rules)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["nash", "alpha_rank", "uniform"])
def test_psro_learns_its_replies(solver, tmp_path, capsys):
    from llm_games.baselines.training import psro

    more = {"steps": 2560, "rounds": 2, "copies": 32, "solver": solver}
    psro.train(psro.PSROOptions(**BIDS | more, folder=tmp_path))
    player = re.search(r"player +(\S+)", capsys.readouterr().out)[1]
    rules = rulebook("sealed_bid_auction", players=2, rounds=1)
    assert play_rules(rules, ["rational", make_player(player, rules)], [1]).lengths == [1]
    assert (tmp_path / "reply-0.zip").exists()
