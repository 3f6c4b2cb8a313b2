"""Measures of skill: their arithmetic, their intervals, and recorded episodes played again."""

import numpy as np
import pytest
from playing import SMALL, each_row

import llm_games as lg
from llm_games.baselines import batch_play
from llm_games.errors import BadParameter
from llm_games.game_rooms import ROOMS
from llm_games.registry import rulebook

REPLAYED = [game for game in ROOMS if batch_play.can_replay(rulebook(game, **SMALL[game]))]


def recorded(game, players, seeds):
    each = [players[i % len(players)] for i in range(game.players)]
    played = [lg.play(game, [lg.player(name) for name in each], seed=seed) for seed in seeds]
    moves = [[record["actions"] for record in episode.records] for episode in played]
    return list(seeds), moves, np.array([episode.payoffs for episode in played])


# -- arithmetic ------------------------------------------------------------------------------------


def test_gap_by_hand():
    # Episodes 0 and 2 like the first reply best, 3 on average; episode 1 likes the second.
    found = batch_play.best_reply_gap([[6.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    assert (found.gap, found.best, found.n) == (2.0, 0, 3)
    assert found.crossed == pytest.approx((0 + 0 + 2) / 3)  # the first on 1, the second on 0 and 2
    assert found.low == 0.0
    t = 4.302652729749462  # of 2 degrees of freedom, .975
    assert found.high == pytest.approx(2 + t * np.std([6, 0, 0], ddof=1) / 3**0.5)


def test_gap_counts_the_own_play_as_a_reply():
    found = batch_play.best_reply_gap([[-1.0, -2.0], [-3.0, -1.0], [-2.0, -2.0]])
    assert found[:3] == (0, 0, 0)
    assert found.best is None
    assert found.high == pytest.approx(-2 + 4.302652729749462 / 3**0.5)  # of the first


def test_gap_of_one_episode_has_no_interval():
    found = batch_play.best_reply_gap([[3.0, 5.0]])
    assert found == batch_play.BestReplyGap(5.0, None, None, None, 1, 1)


def test_gap_without_spread_says_so():
    assert batch_play.best_reply_gap([[1.0], [1.0]]).note == "no spread in 2 runs"
    assert batch_play.best_reply_gap([[1.0], [2.0]]).note == "rests on near-normal runs"
    assert batch_play.best_reply_gap(np.arange(4.0)[:, None]).note == ""


@each_row("gains", [[], [[]], [1.0, 2.0], [[float("nan")]]])
def test_gap_refuses(gains):
    with pytest.raises(BadParameter, match=r"\(episodes, replies\)"):
        batch_play.best_reply_gap(gains)


@each_row("n", [3, 5, 10])
@each_row("means", [np.zeros(21), np.linspace(-2, 1, 21)], ids=["equal", "one best"])
def test_interval_covers(means, n):
    """95 % is said; 400 samples leave 2 points of error."""
    rng = np.random.default_rng(n)
    own = rng.normal(size=(400, n, 1))  # what all gains of an episode share
    samples = means + own + 0.5 * rng.normal(size=(400, n, 21))
    found = [batch_play.best_reply_gap(sample) for sample in samples]
    assert sum(gap.low <= means.max() <= gap.high for gap in found) / 400 >= 0.92
    if not means.any():  # of the best reply itself nothing is claimed
        assert sum(gap.low > 0 for gap in found) / 400 <= 0.06


# -- episodes played again -------------------------------------------------------------------------


@each_row("name", REPLAYED)
def test_the_recorded_payoff_comes_back(name):
    game = rulebook(name, **SMALL[name])
    seeds, moves, payoffs = recorded(game, ["random", "rational", "cooperative"], range(3))
    seats = [0, 1, game.players - 1]
    own, paid = batch_play.counterfactual(game, seeds, moves, seats, [])
    assert own.tolist() == payoffs[range(3), seats].tolist()
    assert paid.shape == (0, 3)


@pytest.mark.crossing
@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.parametrize("player", ["rational", "best_response", "cooperative"])
def test_a_rule_player_replays_itself(name, player):
    game = rulebook(name, **SMALL[name])
    seeds, moves, payoffs = recorded(game, [player, "random"], range(2))
    own, paid = batch_play.counterfactual(game, seeds, moves, [0, 0], ["random", player])
    assert paid[1].tolist() == own.tolist() == payoffs[:, 0].tolist()


def test_seats_and_episodes_keep_their_order():
    game = rulebook("sealed_bid_auction", players=4, rounds=5)
    seeds, moves, _ = recorded(game, ["random", "truthful"], range(6))
    seats, replies = [3, 0, 2, 0, 1, 3], ["rational", "shade:0.9", "random"]
    own, paid = batch_play.counterfactual(game, seeds, moves, seats, replies)
    for i, seat in enumerate(seats):
        alone = batch_play.counterfactual(game, seeds[i : i + 1], moves[i : i + 1], [seat], replies)
        assert alone[0].tolist() == [own[i]]
        assert alone[1][:, 0].tolist() == paid[:, i].tolist()


def test_a_reply_is_what_play_would_have_been():
    """Others who do not look at the past do the same whoever sits among them."""
    game = rulebook("public_goods", players=3, rounds=4)
    others = [lg.player("fixed:5"), lg.player("fixed:11")]
    episode = lg.play(game, [lg.player("cooperative"), *others], seed=3)
    moves = [[record["actions"] for record in episode.records]]
    own, paid = batch_play.counterfactual(game, [3], moves, [0], ["rational", "fixed:7"])
    assert own.tolist() == [episode.payoffs[0]]
    for reply, found in zip(["rational", "fixed:7"], paid[:, 0], strict=True):
        assert found == lg.play(game, [lg.player(reply), *others], seed=3).payoffs[0]


def test_diners_by_hand():
    """Costly costs 10 more for 5 more, of which ten guests share the 10: 4 more a round."""
    game = rulebook("diners_dilemma", rounds=3)
    moves = [[[0] * 10, [0, 1] * 5, [1] * 10]]
    own, paid = batch_play.counterfactual(game, [1], moves, [0], ["fixed:costly", "fixed:cheap"])
    assert (paid[:, 0] - own[0]).tolist() == [8.0, -4.0]


def test_others_that_have_less_do_what_they_can():
    """With carried tokens, who gives nothing leaves the others with less than they gave."""
    game = rulebook("public_goods", players=2, rounds=2, tokens=10, endowment="carry", ratio=2)
    moves = [[[10, 10], [20, 20]]]  # all is doubled, and shared
    own, paid = batch_play.counterfactual(game, [1], moves, [0], ["fixed:0"])
    # The other gives its 10, both have half of 20 more, and it gives the 10 it has left.
    free = lg.play(game, [lg.player("fixed:0"), lg.player("cooperative")], seed=1)
    assert paid[0, 0] == free.payoffs[0]
    assert own[0] == lg.play(game, [lg.player("cooperative")] * 2, seed=1).payoffs[0]


def test_an_episode_cut_short_stays_short():
    game = rulebook("diners_dilemma", rounds=5)
    own, paid = batch_play.counterfactual(
        game, [1, 1], [[[0] * 10] * 2, [[0] * 10] * 5], [0, 0], ["fixed:costly"]
    )
    assert (paid[0] - own).tolist() == [8.0, 20.0]


def test_a_resident_that_died_lives_on():
    """Nobody bids, so that all die early; in the place of one another lives all days."""
    game = rulebook("water_allocation", supply_low=20, supply_high=20, no_bid="none")
    _, moves, payoffs = recorded(game, ["fixed:-1"], [5])
    assert len(moves[0]) < game.days
    assert not payoffs.any()
    _, paid = batch_play.counterfactual(game, [5], moves, [4], ["zero"])
    assert paid.tolist() == [[1.0]]


def test_bidders_go_as_far_as_they_were_seen_to_go():
    items = (("Vase", 100, 200), ("Lamp", 100, 200))
    game = rulebook("english_auction", players=2, items=items, budgets=1000, increment_pct=10)
    # Seat 0 leaves the vase at 110, when seat 1 has bid 100; seat 1 leaves the lamp at 150.
    moves = [[[-1, 100], [140, -1]]]
    own, paid = batch_play.counterfactual(
        game, [1], moves, [0], ["rule:9", "fixed:-1", "cooperative"]
    )
    assert own.tolist() == [60.0]
    assert paid[1].tolist() == [0.0]
    # Seat 1 gave 100 for the vase, so that it falls at 110; the lamp at its start price.
    assert paid[0, 0] in (90.0 + 100.0, 100.0 + 100.0)


@each_row("name", ROOMS)
def test_many_tables_are_played_as_one_is(name):
    game = rulebook(name, **SMALL[name])
    names = [["random", "rational", "cooperative"][seat % 3] for seat in range(game.players)]
    played = batch_play.play_rules(game, names, [3, 5])
    for table, seed in enumerate([3, 5]):
        alone = lg.play(game, [lg.player(player) for player in names], seed=seed)
        assert played.lengths[table] == alone.length
        assert played.payoffs[:, table].tolist() == alone.payoffs.tolist()


@each_row("name", sorted(set(ROOMS) - set(REPLAYED)))
def test_games_whose_others_would_react_are_refused(name):
    game = rulebook(name, **SMALL[name])
    with pytest.raises(batch_play.NoReplay, match="by decision"):
        batch_play.counterfactual(game, [1], [[[0] * game.players]], [0], ["rational"])


def test_a_reply_must_be_a_rule():
    game = rulebook("diners_dilemma")
    with pytest.raises(BadParameter, match="follows a rule, got 'tiny'"):
        batch_play.counterfactual(game, [1], [[[0] * 10]], [0], ["tiny"])
