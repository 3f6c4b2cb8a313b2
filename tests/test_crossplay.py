"""Cross-play: in batches, from a file with models, on a page, and PSRO over it."""

import json
import re
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest
from playing import each_row
from typer.testing import CliRunner

from llm_games.baselines.crossplay import (
    ALL,
    ONE,
    Cross,
    chosen,
    crossplay,
    lineup,
    payoffs,
    places,
    seating,
)
from llm_games.baselines.metagame import lineups
from llm_games.baselines.players import make_player
from llm_games.baselines.skill import play_rules
from llm_games.benchmarks.cli import app
from llm_games.benchmarks.report.crossplay import page
from llm_games.benchmarks.runs import crossplay as runs
from llm_games.benchmarks.runs.config import ConfigError
from llm_games.benchmarks.runs.crossed import Crossed
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.run import RunStopped, play_run, seated_players, start
from llm_games.errors import BadParameter, DiskFull
from llm_games.registry import rulebook

RULES = ["rational", "random", "truthful", "shade:0.5"]
SEALED = {
    "game": "sealed_bid_auction",
    "players": RULES,
    "params": {"players": 3, "rounds": 1},
    "episodes": 7,
}
TINY = {
    "game": "public_goods",
    "players": ["rational", {"player": "tiny", "name": "toy"}],
    "params": {"players": 2, "rounds": 1},
    "episodes": 2,
}


def seated_as(counts, episodes):
    """Return who sits where in each episode of a line-up, ``(seats, episodes)``."""
    return places(counts)[seating(counts, episodes)]


@pytest.fixture(scope="module")
def sealed():
    return runs.crossplay(SEALED)


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
    paid = sealed.cross.against(mixture)
    assert paid.shape == (4, 7)
    assert paid.mean(axis=1) == pytest.approx(sealed.cross.meta().against(mixture))


def test_void_episodes_count_as_the_mean():
    earned = np.array([[[1.0, 3.0]] * 2, [[2.0, np.nan], [4.0, np.nan]], [[5.0, 5.0]] * 2])
    cross = Cross(("a", "b"), ALL, lineups(2, 2), earned)
    assert cross.void == 1
    assert cross.meta().matrix().tolist() == [[2.0, 2.0], [4.0, 5.0]]
    assert cross.ahead.tolist() == [[[0, 0], [1, 0]], [[0, 0], [0, 0]]]
    earned[1] = np.nan
    with pytest.raises(BadParameter, match="all episodes of a, b are void"):
        Cross(("a", "b"), ALL, lineups(2, 2), earned).meta()


def test_what_is_cut_off_is_void_as_in_an_experiment():
    rules = rulebook("public_goods", players=2, rounds=3)
    counts, names = lineups(2, 2), ["rational", "random"]
    whole = payoffs(rules, names, counts, [1, 2], 3, whole=True)
    assert np.array_equal(whole, payoffs(rules, names, counts, [1, 2]))
    assert np.isnan(payoffs(rules, names, counts, [1, 2], 2, whole=True)).all()
    assert np.isfinite(payoffs(rules, names, counts, [1, 2], 2)).all()


def test_who_cannot_be_played_in_a_batch():
    rules = rulebook("public_goods", players=2)
    with pytest.raises(BadParameter, match="two players or more, each once"):
        crossplay(rules, ["rational", "rational"], [1])
    with pytest.raises(BadParameter, match="players that ask no model"):
        crossplay(rules, ["rational", "tiny"], [1])


# -- from a file -----------------------------------------------------------------------------------


def test_it_is_what_an_ordinary_run_records(sealed, tmp_path):
    """Line-ups that ask nobody are played in batches, but could as well have been a run's."""
    plan, file = sealed.plan, tmp_path / "run.db"
    run = plan.run(plan.counts)
    with seated_players(run) as made:
        play_run(lambda: start(run, file), run, made)
    earned = np.full(sealed.cross.earned.shape, np.nan)
    runs.Ready(plan, file, [], range(len(plan.counts)), run, False)._read(earned)
    assert np.array_equal(earned, sealed.cross.earned)
    assert sealed.db is None


@pytest.mark.slow
def test_models_are_asked_once(tmp_path):
    file = tmp_path / "cross.db"
    with pytest.raises(RunStopped, match="budget"):
        runs.crossplay(TINY | {"budget": {"calls": 3}}, file)
    stopped = _answers(file)
    assert len(stopped) == 2  # after the greeting
    whole = runs.crossplay(TINY, file)
    assert len(_answers(file)) == 2 * (2 + 1)  # of two seats, and of one
    assert whole.db == file
    again = runs.crossplay(TINY, file, episodes=3)
    assert len(_answers(file)) == 3 * (2 + 1)
    assert np.array_equal(again.cross.paid[..., :2], whole.cross.paid, equal_nan=True)
    first = runs.crossplay(TINY, file)
    assert np.array_equal(first.cross.paid, whole.cross.paid, equal_nan=True)
    fresh = runs.crossplay(TINY, tmp_path / "other.db")
    assert np.array_equal(fresh.cross.paid, whole.cross.paid, equal_nan=True)
    with pytest.raises(ConfigError, match="has another run: other players, settings, seeds"):
        runs.crossplay(TINY, file, seed=2)


def _answers(file):
    with Records.open_readonly(file) as records:
        return [row["text"] for _, row in records.table("attempts")]


class Own:
    """Gives all that it has."""

    name = "mine"

    def __call__(self, observation, view):
        return 20


def test_a_player_of_ones_own(tmp_path):
    played = runs.crossplay(TINY | {"players": ["rational", Own()]}, tmp_path / "own.db")
    assert played.cross.meta().matrix()[1, 1] == 40


@each_row(
    ("change", "said"),
    [
        ({"players": None}, "the key players is missing"),
        ({"players": ["rational"]}, "at least 2 items"),
        ({"players": ["rational", "rational"]}, "two players are called 'rational'"),
        ({"players": ["rational", "rationel"]}, "did you mean 'rational'"),
        ({"player": "tiny"}, "player = 'tiny'"),
        ({"games": []}, "there is no key games"),
        ({"lineups": "most"}, "lineups = 'most'"),
        ({"game": "public_good"}, "there is no game 'public_good'"),
        ({"params": {"rounds": 0}}, "rounds"),
    ],
)
def test_what_cannot_be_played_is_said_first(change, said):
    with pytest.raises(ConfigError, match=said):
        runs.crossplay(SEALED | change)


def test_what_is_somebodys_own_has_no_place():
    about = {"game": "english_auction", "players": ["rational", "random"]}
    with pytest.raises(ConfigError, match="give one value for all"):
        runs.crossplay(about | {"params": {"players": 2, "budgets": [3000, 4000]}})


def test_uneven_seats_are_said():
    pirates = {"game": "pirate_game", "players": ["rational", "random"], "params": {"players": 4}}
    assert not runs.plan_of(pirates | {"episodes": 8}).uneven()
    assert (
        "have not had each seat equally often" in runs.plan_of(pirates | {"episodes": 6}).uneven()
    )
    assert not runs.plan_of(SEALED | {"episodes": 7}).uneven()  # where no seat is worth more


# -- what it came to -------------------------------------------------------------------------------


def test_standings_know_who_is_better(sealed):
    crossed = Crossed(sealed.cross)
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
    assert crossed.plain()["correlated"] is None


def test_nobody_gains_over_the_equilibrium(sealed):
    crossed = Crossed(sealed.cross)
    assert crossed.equilibria
    assert min(cell.mean for cell in crossed.losses) == pytest.approx(0, abs=1e-6)
    least, most = crossed.correlated[1].payoff, crossed.correlated[0].payoff
    assert all(least - 1e-6 <= one.payoff <= most + 1e-6 for one in crossed.equilibria)


def test_its_page(sealed, tmp_path):
    path = page(sealed, tmp_path / "out")
    text = path.read_text("utf-8")
    assert text.count("<svg") == 5
    for words in ("Standings", "Each with each", "Nash equilibria", "shade:0.5", "α-rank"):
        assert words in text
    assert "src=" not in text
    names = {file.name for file in (tmp_path / "out" / "tables").iterdir()}
    assert names == {
        f"{n}.csv" for n in ("standings", "matrix", "equilibria", "correlated", "ranked", "lineups")
    }
    rows = (tmp_path / "out" / "tables" / "lineups.csv").read_text("utf-8").splitlines()
    assert len(rows) == 1 + sum((counts > 0).sum() for counts in sealed.cross.counts)


def test_a_full_disk_leaves_the_page_that_was_there(sealed, tmp_path, monkeypatch):
    from llm_games.benchmarks.report import page as pages

    path, whole, left = page(sealed, tmp_path), pages.write_whole, [3]
    before = path.read_bytes()

    def full(file, content):
        left[0] -= 1
        if not left[0]:
            raise DiskFull("no room is left")
        return whole(file, content)

    monkeypatch.setattr(pages, "write_whole", full)
    with pytest.raises(BadParameter, match=r"cannot be written to .*: no room is left"):
        page(sealed, tmp_path)
    assert path.read_bytes() == before
    linked = re.findall(r'href="((?:figures|tables)/[^"]+)"', path.read_text("utf-8"))
    assert linked
    assert all((tmp_path / unquote(one)).exists() for one in linked)


def test_its_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bids.toml").write_text(
        'game = "sealed_bid_auction"\nplayers = ["rational", "random"]\nepisodes = 4\n'
        "params = {players = 3, rounds = 1}\n"
    )
    call = lambda *more: CliRunner().invoke(app, ["crossplay", "bids.toml", *more])  # noqa: E731
    told = json.loads(call("--json", "--episodes", "6").stdout)
    assert (told["episodes"], told["seats"], told["db"]) == (6, 3, None)
    assert {row["player"] for row in told["standings"]} == {"rational", "random"}
    assert len(told["payoffs"]) == 6
    shown = call("--report", "out")
    assert (shown.exit_code, (tmp_path / "out" / "report.html").exists()) == (0, True)
    assert "Nash" in (tmp_path / "out" / "report.html").read_text("utf-8")
    dry = call("--dry-run", "--json")
    assert json.loads(dry.stdout) == {"lineups": 4, "asked": 0, "episodes": 16, "episodes asked": 0}


@pytest.mark.slow
def test_the_same_command_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(
        'game = "public_goods"\nplayers = ["rational", "tiny"]\nepisodes = 2\n'
        'params = {players = 2, rounds = 1}\ncache = ":memory:"\n'
    )
    call = lambda *more: CliRunner().invoke(app, ["crossplay", "toy.toml", *more])  # noqa: E731
    stopped = call("--budget-calls", "2")
    assert stopped.exit_code == 1
    assert "go on with: llm-games crossplay toy.toml --budget-calls MORE" in stopped.stderr
    assert call("-q", "--budget-calls", "20").exit_code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["toy.db", "toy.toml"]


@pytest.mark.slow
def test_a_dry_run_counts_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(
        'game = "public_goods"\nplayers = ["rational", "tiny"]\nepisodes = 5\n'
        "params = {players = 2, rounds = 1}\n"
    )
    told = CliRunner().invoke(app, ["crossplay", "toy.toml", "--dry-run", "--json"])
    assert json.loads(told.stdout)["low"]["calls"] == 5 * (2 + 1)
    assert not (tmp_path / "toy.db").exists()


def test_lineups_in_words():
    assert lineup(["a", "b", "c"], np.array([2, 0, 1])) == "2 × a, c"


# -- PSRO ------------------------------------------------------------------------------------------


BIDS = {
    "game": "sealed_bid_auction",
    "param": ["players=2", "rounds=1"],
    "episodes": 40,
    "steps": 6,
}


@pytest.mark.slow
def test_psro_goes_on_as_if_it_had_never_stopped(tmp_path, monkeypatch):
    from llm_games.baselines.training import psro
    from llm_games.baselines.training.common import curve

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
        def _met(self):
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
    from llm_games.baselines.training.common import curve

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
    met = whole.met({name: make_player(name, rules) for name in names[:2]})
    played = crossplay(rules, names[:2], range(6)).meta()  # those that draw nothing
    assert met.payoffs == pytest.approx(played.payoffs, nan_ok=True)


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
