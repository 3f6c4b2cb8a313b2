"""Economics Arena: metrics by hand, tables, experiments that run offline, players and deviation."""

import dataclasses
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from playing import each_row

from llm_games.baselines.players import make_player
from llm_games.baselines.regret import deviation
from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import PAPERS
from llm_games.benchmarks.papers.econ_arena import metrics as econ_arena
from llm_games.benchmarks.papers.econ_arena.metrics import player_runs, standings
from llm_games.benchmarks.papers.gamma_bench.scores import score_episode
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.errors import UnknownName
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play
from llm_games.wrappers.seats import plain


class Session(NamedTuple):
    rules: Rulebook
    seats: list[str]
    records: list[dict[str, Any]]


def mean_deviation(sessions, measure="scaled"):
    """Return d of equation 2 over all players and runs, and how many were left out of it."""
    found = [t.deviation for s in sessions for run in player_runs(s, measure) for t in run]
    known = [deviation for deviation in found if deviation is not None]
    return (float(sum(known) / len(known)) if known else None), found.count(None)


AUCTION = {"preset": "econ_arena_L", "players": 3, "rounds": 3}
AUCTION |= {"valuations": [[60, 50, 40]], "entrance_fee": 10}
ABC = ("a", "b", "c")


def record(game, *runs, names=None, seed=1):
    state, records = game.reset(seed), []
    for run in runs:
        actions = [MISSING if x is None else round(Fraction(str(x)) * game.unit) for x in run]
        state, outcome = game.step(state, np.array(actions))
        records.append(plain(outcome))
    return Session(game, names or game.names(), records)


def auction_session():
    game = rulebook("budget_auction", **AUCTION)
    return record(game, (60, 50, 40), (40, 55, 40), (90, 80, 120), names=ABC)


def contest(*runs, names=None, **more):
    settings = {"preset": "econ_arena", "players": len(runs[0]), "rounds": len(runs)} | more
    return record(rulebook("beauty_contest", **settings), *runs, names=names)


def test_an_auction_session_by_hand():
    session = auction_session()
    first, *others = [r["final"] for r in session.records]
    assert first == [11000, 10000, 10000]
    assert others == [[10000, 11000, 10000], [8000, 10000, 9000]]
    assert econ_arena.equilibrium_assets(session.records[0]) == [11000, 10000, 10000]
    by_seat = list(zip(*player_runs(session), strict=True))
    deviations = [[turn.deviation for turn in seat] for seat in by_seat]
    by_a = [0, Fraction(1, 11), Fraction(3, 11)]
    assert deviations == [by_a, [0, Fraction(1, 10), 0], [0, 0, None]]
    gains = [[turn.payoff for turn in seat] for seat in by_seat]
    assert gains == [[10, 0, -20], [0, 10, 0], [0, 0, -10]]
    a, b, c = standings([session])
    assert [s.ratio.mean for s in (a, b, c)] == pytest.approx([29 / 33, 31 / 30, 29 / 30])
    assert [s.deviation for s in (a, b, c)] == pytest.approx([4 / 33, 1 / 30, 0])
    assert [s.won / s.runs for s in (a, b, c)] == [2 / 3, 1 / 3, 0]
    breaks = [row.percent for row in econ_arena.break_table([session])]
    assert breaks == pytest.approx([0, 0, 100 / 3])
    assert (c.bad_format, c.bad_range, c.left_out) == (0, 1, 1)
    assert a.advantage.mean == pytest.approx(-20 / 3 + 10 / 3 - 10)
    assert a.asset_ratio.mean == pytest.approx(29 / 30)
    assert mean_deviation([session]) == (51 / 880, 1)


def test_what_a_losing_bid_hides_is_a_misbid():
    session = auction_session()
    assert player_runs(session)[1][0].misbid == Fraction(20, 60)
    assert standings([session])[0].misbid == pytest.approx((0 + 20 / 60 + 30 / 60) / 3)


def test_the_paper_s_ratio():
    game = rulebook("budget_auction", **(AUCTION | {"valuations": [[60, 60, 40]]}))
    first = player_runs(record(game, (60, 50, 0)))[0][0]
    assert (first.ratio, first.asset_ratio) == (Fraction(11, 10), Fraction(11, 10))


def test_a_first_price_auction_has_no_reference():
    game = rulebook("budget_auction", **(AUCTION | {"price": "first"}))
    session = record(game, (60, 50, 40))
    assert econ_arena.title(session.rules) == "first_price_auction"
    assert {turn.deviation for turn in player_runs(session)[0]} == {None}
    assert (standings([session])[0].ratio, standings([session])[0].advantage) == (None, None)


def test_a_contest_session_by_hand():
    runs = ((33, 0, 0, 0, 0), (15, 0, 0, 0, 0), (0, 0, 0, 0, 0))
    session = contest(*runs, names=("a", *"bbbb"))
    a, b = standings([session])
    assert [run[0].payoff for run in player_runs(session)] == [0, 0, Fraction(1, 5)]
    quarter, fifth = Fraction(1, 4), Fraction(1, 5)
    assert [run[1].payoff for run in player_runs(session)] == [quarter, quarter, fifth]
    assert (a.ratio.mean, b.ratio.mean) == pytest.approx((1 / 3, 7 / 6))
    assert a.deviation == pytest.approx(4 / 25)
    assert (a.runs, b.runs, b.won) == (3, 12, 12)
    ratio = player_runs(session, "ratio")
    assert [run[0].deviation for run in ratio] == [None] * 3
    assert standings([session], "ratio")[0].left_out == 3
    assert [run[0].deviation for run in player_runs(session, "absolute")] == [33, 15, 0]


@each_row(
    ("more", "numbers", "expected"),
    [
        ({"min": 10, "max": 60}, (10, 35, 60), (0, Fraction(1, 2), 1)),
        ({"ratio": "4/3"}, (100, 40, 0), (0, Fraction(3, 5), 1)),
        ({"ratio": 1}, (100, 40, 0), (None, None, None)),
    ],
)
def test_deviation_is_safe_at_zero(more, numbers, expected):
    session = contest(numbers, **more)
    assert tuple(turn.deviation for turn in player_runs(session)[0]) == expected


def test_deviation_counts_from_the_drawn_limit():
    session = contest((10, 5, 0), preset="econ_arena_L")
    limit = Fraction(session.records[0]["limit"], session.rules.unit)
    assert player_runs(session)[0][0].deviation == player_runs(session)[0][0].position == 10 / limit


def test_when_all_rules_are_broken():
    session = contest((None, 101, -1), foul_fee=2)
    assert [(t.payoff, t.broke, t.deviation) for t in player_runs(session)[0]] == [
        (-2, "format", None),
        (-2, "range", None),
        (-2, "range", None),
    ]
    assert mean_deviation([session]) == (None, 3)
    assert econ_arena.path([session]) == [None]
    game = rulebook("budget_auction", **AUCTION)
    broken = record(game, (None, 101, -1), names=ABC)
    assert [t.payoff for t in player_runs(broken)[0]] == [-10] * 3
    rows = econ_arena.break_table([broken])
    found = [(row.player, row.percent, row.bad_format) for row in rows]
    assert found == [("a", 100, 1), ("b", 100, 0), ("c", 100, 0)]


def test_convergence():
    one, two = ([50, 33, 22, 15, 4, 0], [40, 30, 20, 14, 3, 1])
    sessions = [contest(*((x, 0) for x in numbers)) for numbers in (one, two)]
    places = econ_arena.path(sessions, "player_0")
    assert places == pytest.approx([0.45, 0.315, 0.21, 0.145, 0.035, 0.005])
    goal = econ_arena.goal(sessions[0].rules)
    assert econ_arena.convergence_run(places, goal) == 5
    assert econ_arena.convergence_rate(places, goal) == pytest.approx(1 - 90**-0.2)
    assert econ_arena.path(sessions)[0] == pytest.approx(0.225)


@each_row(
    ("places", "run", "rate"),
    [
        ([0.5, 0.01, 0.2, 0.01], 4, pytest.approx(1 - 0.02 ** (1 / 3))),
        ([0.5, 0.2], None, pytest.approx(0.6)),
        ([0.0, 0.0], 1, None),
        ([0.5, None], None, None),
        ([0.01], 1, None),
        ([], None, None),
    ],
)
def test_convergence_at_the_edges(places, run, rate):
    assert econ_arena.convergence_run(places, 0) == run
    assert econ_arena.convergence_rate(places, 0) == rate


def test_a_tolerance_is_as_it_is_written():
    assert econ_arena.convergence_run([0.95], 1) == 1
    assert econ_arena.convergence_run([0.9499], 1) is None


@pytest.mark.parametrize("group", "LMH")
@pytest.mark.parametrize("name", ["beauty_contest", "budget_auction"])
def test_records_of_a_game_just_played_are_sessions(name, group):
    game = rulebook(name, preset=f"econ_arena_{group}", players=3, rounds=2)
    sessions = []
    for seed in (1, 2):
        episode = play(game, [make_player("random", game)] * 3, seed)
        live = [step.outcome.record for step in episode.steps]
        stored = [plain(step.outcome) for step in episode.steps]
        sessions.append(Session(game, "abc", live))
        assert player_runs(sessions[-1]) == player_runs(Session(game, "abc", stored))
    assert all(type(t.won) is bool for run in player_runs(sessions[0]) for t in run)
    assert len(standings(sessions)) == 3


def test_given_valuations_need_no_law():
    game = rulebook("budget_auction", preset="econ_arena", assets=100,
                    valuations=[[48, 60, 55, 41, 52]])  # fmt: skip
    _, outcome = game.step(game.reset(), np.array([4800, 6000, 5500, 4100, 5200]))
    assert outcome.record["final"].tolist() == [10000, 10500, 10000, 10000, 10000]


@each_row("name", ["beauty_contest", "budget_auction"])
def test_the_arena_asks_nobody_again(name):
    params = {"preset": "econ_arena", "players": 3}
    for more, asked in (({}, 1), ({"reasks": True}, 3)):
        client = ScriptedClient(lambda request: "no idea")
        episode = play(name, [LLMPolicy(client)] * 3, **params, **more)
        assert len(episode.steps[0].decisions[0].attempts) == asked


def test_an_auction_converges_to_its_valuations():
    session = auction_session()
    assert econ_arena.goal(session.rules) == 1
    assert econ_arena.path([session], "a") == pytest.approx([1, 2 / 3, 3 / 2])


def test_statistics_over_sessions():
    sessions = [contest(numbers, names="ab") for numbers in ((0, 50), (50, 0), (0, 9))]
    a, _ = standings(sessions)
    assert a.payoff[:3] == (2 / 3, pytest.approx(np.std([1, 0, 1], ddof=1)), 3)
    assert a.payoff.error == pytest.approx(a.payoff.std / np.sqrt(3))
    assert MeanCell(1.0, None, 1).error is None


def test_sessions_are_the_units_of_intervals():
    """Runs of one session are no sample of their own, nor are the seats of one name."""
    sessions = [contest((0, 50), (0, 20), names="ab"), contest((50, 0), (9, 0), names="ab")]
    sessions.append(contest((0, 40), (60, 5), names="ab"))
    a, b = standings(sessions)
    assert a.payoff.interval == intervals.score([1, 0, 0.5], 0, 1)  # no share is beyond the prize
    assert a.ratio.interval[:2] == pytest.approx([2 * end for end in a.payoff.interval[:2]])
    assert a.shown["won"].interval == intervals.score([1, 0, 0.5], 0, 1)
    own = [
        np.mean([float(t.deviation) for run in player_runs(s) for t in run[:1]]) for s in sessions
    ]
    assert a.shown["deviation"].mean == a.deviation
    assert a.shown["deviation"].interval[:2] == pytest.approx(intervals.score(own, 0, 1)[:2])
    assert standings(sessions[:1])[0].shown["deviation"].interval is None
    track = econ_arena.SessionResults()
    for session in sessions:
        track.add(session)
    assert track.track("a").tolist() == [[0, 0], [0.5, 0.09], [0, 0.6]]
    assert np.nanmean(track.track("b"), axis=0).tolist() == pytest.approx(track.path("b"))
    assert b.payoff.runs == 3


def test_rule_breaks_have_the_interval_of_the_sessions_own_shares():
    sessions = [contest((0, 500), (0, 1), names="ab"), contest((0, 1), (0, 1), names="ab")]
    broken = econ_arena.break_table(sessions)[1]
    assert (broken.player, broken.percent, broken.shown.mean) == ("b", 25, 25)
    assert broken.shown.interval == intervals.score([50, 0])


def test_payoffs_of_the_first_sessions():
    sessions = [contest((0, 50), names="ab")] * 2 + [contest((50, 0), names="ab")] * 2
    assert [found.payoff.mean for found in standings(sessions[:2])] == [1, 0]
    assert [found.payoff.mean for found in standings(sessions)] == [0.5, 0.5]
    gains = {found.player: found.payoff.mean for found in standings([auction_session()])}
    assert gains == pytest.approx({"a": -10 / 3, "b": 10 / 3, "c": -10 / 3})


def test_break_table_tells_history_apart():
    shown = contest((0, 500), (0, 1), names="ab")
    hidden = contest((0, 1), (None, 500), names="ab", reveal_last=0)
    rows = econ_arena.break_table([shown, hidden])
    assert [(r.history, r.player, r.runs, r.broken_runs, r.bad_format) for r in rows] == [
        (False, "a", 2, 1, 1),
        (False, "b", 2, 1, 0),
        (True, "a", 2, 0, 0),
        (True, "b", 2, 1, 0),
    ]


def test_what_is_not_of_the_arena_is_refused():
    game = rulebook("sealed_bid_auction", players=3, rounds=1)
    with pytest.raises(UnknownName, match="known: beauty_contest, budget_auction"):
        player_runs(Session(game, ABC, []))
    with pytest.raises(UnknownName, match="known: absolute, ratio, scaled"):
        player_runs(auction_session(), "relative")


def test_sessions_have_no_score_of_another_benchmark():
    session = auction_session()
    first = dataclasses.replace(session.rules, price="first")
    assert score_episode(first, session.records) is None
    drawn = contest((10, 5, 0), preset="econ_arena_L")
    assert score_episode(drawn.rules, drawn.records) is None


# -- published tables ----------------------------------------------------------------------------


def test_published_payoffs():
    rows = econ_arena.published_payoffs()
    assert len(rows) == 30
    for sessions in (20, 60, 100):
        shares = [r.payoff for r in rows if (r.game, r.sessions) == ("beauty_contest", sessions)]
        assert sum(shares) == pytest.approx(1, abs=1e-9)
    assert ("second_price_auction", 20, "Claude2", 1.454) in rows


def test_published_rule_breaks():
    rows = econ_arena.published_rule_breaks()
    assert len(rows) == 36
    for row in rows:
        assert row.runs == (180 if row.history else 150)
        assert 100 * row.broken_runs / row.runs == pytest.approx(row.percent, abs=0.0101)
    total = {}
    for row in rows:
        runs, broken = total.get(row[:2], (0, 0))
        total[row[:2]] = runs + row.runs, broken + row.broken_runs
    overall = {key: round(100 * broken / runs, 1) for key, (runs, broken) in total.items()}
    assert list(overall.values()) == [25.4, 26.2, 16.1, 12.8]


# -- experiments ---------------------------------------------------------------------------------

EXPERIMENTS = sorted(path.stem for path in (PAPERS / "econ_arena").glob("*.toml"))


def planned(name, **changes):
    raw = load(f"econ-arena/{name}") | changes
    return resolve(parse(raw, name), name)


def test_all_experiments_are_there():
    assert set(EXPERIMENTS) >= {
        *("vanilla", "melee", "rational", "senior", "self", "step_by_step"),
        *("history_rational", "history_melee"),
    }


@each_row("name", EXPERIMENTS)
def test_experiments_are_offline_and_ask_once(name):
    for game in planned(name).games:
        for seat in game.seats:
            assert seat.player.partition(":")[0] not in ("openai", "transformers")
            assert seat.settings.get("max_attempts", 1) == 1
        game.rules()


def test_the_numbers_of_sessions_are_the_paper_s():
    for name, runs in (("melee", 150), ("rational", 150), ("history_melee", 180)):
        total = {}
        for game in planned(name).games:
            if "values" not in game.label:
                count = len(game.seeds) * game.rules().rounds
                total[game.game] = total.get(game.game, 0) + count
        assert {k: v for k, v in total.items() if "english" not in k} == {
            "beauty_contest": runs,
            "budget_auction": runs,
        }
    assert [len(game.seeds) for game in planned("senior").games[:2]] == [100, 100]


@each_row("name", ["rational", "history_rational", "step_by_step"])
def test_a_rational_room_seats_one_model(name):
    changed = planned(name, seats=["openai:some-model"])
    for game in changed.games:
        assert [seat.player for seat in game.seats] == ["openai:some-model", *["rational"] * 4]
        assert game.params["told_rational"]
        assert game.seats[0].settings["structured"] is False


def test_rooms_with_a_history_show_so_many_runs():
    games = {game.label: game.rules() for game in planned("history_rational").games}
    assert [games[f"beauty contest, last {k}"].reveal_last for k in range(4)] == [0, 1, 2, 3]
    assert {game.rounds for game in games.values()} == {6}
    assert not econ_arena.shows_history(games["auction, no history"])
    assert econ_arena.shows_history(games["auction, bids and values, last 3"])


def test_from_a_file_to_the_tables(tmp_path):
    """The rules players of the melee, recorded to a file and read back."""
    raw = load("econ-arena/history_melee")
    seats = ["rational", "best_response", "cooperative", "random", *["rational"] * 5]
    plan = resolve(parse(raw | {"seats": seats, "episodes": 2}, "test"), "test")
    play_run(lambda: start(plan, tmp_path / "run.db"), plan, players(plan))
    with Records.open_readonly(tmp_path / "run.db") as run:
        found = {game.label: game.done for game in games(run)}
        assert all(session.rules and session.records for done in found.values() for session in done)
    assert [len(sessions) for sessions in found.values()] == [2, 2, 2]
    for sessions in found.values():
        for session in sessions:
            assert len(session.records) == 6
        truthful = standings(sessions)[0]
        assert truthful.player == "rational"
        assert truthful.misbid in (0, None)
    shares = {row.player: row.payoff.mean for row in standings(found["beauty contest"])}
    assert sum(shares.values()) + 5 * shares["rational"] == pytest.approx(1)


# -- players and deviation -----------------------------------------------------------------------


def actions_of(name, game, state):
    policy = make_player(name, game)
    moves = []
    for seat in range(game.players):
        memory = policy.start(game, seat, 7)
        moves.append(policy.act(View.of(game, state, seat), memory)[0].action)
    return np.array(moves)


@pytest.mark.parametrize("group", ["L", "M", "H"])
@pytest.mark.parametrize("fee", [0, 50])
def test_rational_bidders_are_truthful_and_regret_nothing(group, fee):
    game = rulebook("budget_auction", preset=f"econ_arena_{group}", entrance_fee=fee, rounds=2)
    state = game.reset(5)
    bids = actions_of("rational", game, state)
    assert bids.tolist() == state.valuations.tolist()
    _, outcome = game.step(state, bids)
    found = deviation(game, outcome.record)
    assert (found.nash_conv, found.distance) == (0, 0)
    assert mean_deviation([Session(game, game.names(), [plain(outcome)])]) == (0, 0)


def test_rational_bidders_bid_no_more_than_they_have():
    assets = (100, 90, 100)
    game = rulebook(
        "budget_auction", players=3, assets=assets, mu=50, sigma=10, price="second",
        valuations=[[80, 120, 70]],
    )  # fmt: skip
    state = game.reset()
    bids = actions_of("rational", game, state)
    assert bids.tolist() == [8000, 9000, 7000]
    _, outcome = game.step(state, bids)
    assert outcome.record["final"].tolist() == [10000, 13000, 10000]
    assert deviation(game, outcome.record).nash_conv == 0


def test_bidders_of_equal_values_bid_them():
    certain = rulebook("budget_auction", preset="econ_arena_L", price="first", sigma=0)
    assert actions_of("rational", certain, certain.reset()).tolist() == [5000] * 5


@each_row("group", ["L", "M", "H"])
def test_rational_guessers_name_the_minimum(group):
    game = rulebook("beauty_contest", preset=f"econ_arena_{group}", players=5)
    state = game.reset(5)
    numbers = actions_of("rational", game, state)
    assert numbers.tolist() == [0] * 5
    _, outcome = game.step(state, numbers)
    assert outcome.rewards.tolist() == [0.2] * 5
    found = deviation(game, outcome.record)
    assert (found.nash_conv, found.distance) == (0, 0)


@each_row(("level", "share"), [(0, "1/2"), (1, "1/3"), (2, "2/9")])
def test_levels_begin_in_the_middle_of_the_drawn_range(level, share):
    game = rulebook("beauty_contest", preset="econ_arena_M")
    state = game.reset(5)
    expected = round(Fraction(share) * int(state.limit))
    assert abs(actions_of(f"level_k:{level}", game, state) - expected).max() <= 1
    batch = game.reset(5, (4,))
    view = View.of(game, batch, 2)
    policy = make_player(f"level_k:{level}", game)
    numbers = policy.act(view, policy.start(game, 2, 0))[0].action
    assert abs(numbers - Fraction(share) * batch.limit).max() <= 1


@each_row("name", ["rational", "best_response", "cooperative", "random", "fixed:7"])
@each_row("more", [{}, {"price": "first", "reveal": "bids", "rounds": 6}])
def test_players_finish_sessions_without_breaking_a_rule(name, more):
    game = rulebook("budget_auction", preset="econ_arena_L", **more)
    episode = play(game, [make_player(name, game)] * 5, 3)
    assert not any(step.outcome.broke.any() for step in episode.steps)
    assert len(episode.steps) == game.rounds


def test_the_best_response_outbids_the_bids_it_was_shown():
    game = rulebook(
        "budget_auction", **AUCTION | {"price": "first", "reveal": "bids"}
    )  # fmt: skip
    state, _ = game.step(game.reset(), np.array([100, 2000, 1500]))
    assert actions_of("best_response", game, state)[[0, 2]].tolist() == [2001, 2001]


SMALL = {"players": 3, "assets": (6, 9, 7), "mu": 4, "sigma": 2, "decimals": 0, "rounds": 1}


@each_row("price", ["first", "second"])
@each_row("rules", ["exclude", "include"])
@each_row("least", [1, 2])
def test_regret_is_what_the_best_other_bid_would_have_paid(price, rules, least):
    more = {"price": price, "rule_breaker": rules, "min_valid_bids": least, "entrance_fee": 1}
    game = rulebook("budget_auction", **SMALL, **more)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        state = game.reset(seed)
        bids = rng.integers(-1, 11, 3)
        bids[rng.random(3) < 0.1] = MISSING
        _, outcome = game.step(state, bids)
        found, unplayed = deviation(game, outcome.record), game.unplayed(outcome.record)
        assert np.array_equal(np.isnan(found.regret), unplayed)
        for seat, most in enumerate(game.assets):
            if unplayed[seat]:
                continue
            paid = []
            for bid in range(most + 1):
                tried = bids.copy()
                tried[seat] = bid
                paid.append(game.step(state, tried)[1].rewards[seat])
            assert found.regret[seat] == max(paid) - outcome.rewards[seat]
        assert np.isnan(found.distance) == outcome.broke.any()
        assert outcome.broke.any() or 0 <= found.distance <= 1


def test_regret_in_a_drawn_range_and_in_batches():
    game = rulebook("beauty_contest", players=3, max_draw=(3, 8), prize_rule="split", rounds=1)
    rng = np.random.default_rng(2)
    state = game.reset(2, (30,))
    numbers = rng.integers(0, state.limit + 2, (3, 30))
    _, outcome = game.step(state, numbers)
    found = deviation(game, outcome.record)
    for table in range(30):
        alone, mine = state.table(table), numbers[:, table]
        _, single = game.step(alone, mine)
        one = deviation(game, single.record)
        assert np.array_equal(one.regret, found.regret[:, table], equal_nan=True)
        assert np.array_equal(one.distance, found.distance[table], equal_nan=True)
        unplayed = game.unplayed(single.record)
        assert np.array_equal(np.isnan(one.regret), unplayed)
        for seat in np.flatnonzero(~unplayed):
            tried = [np.where(np.arange(3) == seat, n, mine) for n in range(alone.limit + 1)]
            best = max(game.step(alone, other)[1].rewards[seat] for other in tried)
            assert one.regret[seat] == pytest.approx(best - single.rewards[seat])
