"""``mix:``, a player that is another one each episode."""

import numpy as np
import pytest
from playing import each_row

import llm_games
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.players import make_player
from llm_games.errors import BadParameter, UnknownName
from llm_games.wrappers.player_mixture import PlayerMixture
from llm_games.wrappers.policy import Decision, Note, Policy, RandomPolicy

GAME = llm_games.rules("beauty_contest", players=3, rounds=4)
MIX = "mix:level_k:0|3*level_k:1|best_response"


def moves(episode):
    return [np.asarray(step.outcome.record["actions"]).tolist() for step in episode.steps]


def test_it_is_one_of_them_for_the_whole_episode_and_nothing_else():
    mixture, names = make_player(MIX, GAME), ("level_k:0", "level_k:1", "best_response")
    others = [make_player("random")] * 2
    met = set()
    for seed in range(12):
        episode = llm_games.play(GAME, [mixture, *others], seed=seed)
        alone = {
            name: moves(llm_games.play(GAME, [make_player(name), *others], seed=seed))
            for name in names
        }
        met |= {name for name, own in alone.items() if own == moves(episode)}
        assert moves(episode) in alone.values()
    assert met == set(names)


@pytest.mark.parametrize("name", ["beauty_contest", "pirate_game", "battle_royale"])
def test_a_batch_is_its_tables_one_by_one(name):
    game = llm_games.rules(name)
    mixture = make_player("mix:random|rational|best_response", game)
    together = play_rules(game, [mixture] * game.players, range(4), max_steps=30).payoffs
    for seed in range(4):
        alone = llm_games.play(game, [mixture] * game.players, seed=seed, max_steps=30)
        assert np.allclose(alone.payoffs, together[:, seed])


def test_seats_draw_by_their_weights_independently():
    mixture = make_player(MIX, GAME)
    seeds = np.arange(30_000).reshape(3, 10_000)
    drawn = mixture.start_batch(GAME, np.ones(seeds.shape, bool), seeds).which
    assert np.allclose(np.bincount(drawn.ravel()) / drawn.size, [0.2, 0.6, 0.2], atol=0.01)
    assert np.abs(np.corrcoef(drawn)[np.triu_indices(3, 1)]).max() < 0.03
    again = mixture.start_batch(GAME, np.arange(10_000) < np.full((3, 1), 5), seeds + 1)
    assert np.array_equal(again.which[:, :5], mixture.drawn(seeds + 1)[:, :5])


def test_learners_meet_it():
    env = llm_games.learners(GAME, 8, opponents=MIX)
    env.reset(seed=3)
    paid = [env.step(env.action_space.sample())[1] for _ in range(10)]
    assert np.isfinite(paid).all()


class Scribe(Policy):
    name = "scribe"

    def start(self, game, seat, seed):
        return ()

    def act(self, view, memory):
        raise AssertionError("it waits")

    async def decide(self, view, memory):
        return RandomPolicy().act(view, (1, 0))[0], memory

    def hear(self, view, memory):
        return (*memory, "heard")

    async def finish(self, view, memory):
        return Decision(0, notes=(Note("count", {"heard": len(memory)}),))

    def recall(self, memory, notes):
        return (*memory, *notes)


def test_those_who_wait_hear_and_look_back_do():
    plain, mixture = (
        PlayerMixture([RandomPolicy()]),
        PlayerMixture([RandomPolicy(), Scribe()], [1, 2]),
    )
    for own, does in ((plain, False), (mixture, True)):
        assert (own.waits, own.does("hear"), own.does("finish")) == (does, does, does)
    others = [make_player("random")] * 2
    found = [llm_games.play(GAME, [mixture, *others], seed=seed) for seed in range(8)]
    noted = {len(episode.afterwards) for episode in found}
    heard = {own.notes[0].content["heard"] for e in found for own in e.afterwards.values()}
    assert noted == {0, 1}
    assert heard == {GAME.rounds + 1}
    env = llm_games.learners(GAME, 8, opponents=mixture)
    env.reset(seed=3)
    for _ in range(6):
        env.step(env.action_space.sample())


@each_row(
    ("name", "error", "said"),
    [
        ("mix", BadParameter, "needs a value"),
        ("mix:level_k:0|", BadParameter, "name each player"),
        ("mix:mix:rational|level_k:1", BadParameter, "name each player once"),
        ("mix:much*level_k:0", BadParameter, "weight before .* is a number, got 'much'"),
        ("mix:0*level_k:0", BadParameter, "finite weight above 0"),
        ("mix:tiny|rational", BadParameter, "asks a model.*Mixture"),
        ("mix:rational|rationl", UnknownName, "did you mean 'rational'"),
        ("mix:rational|shade:0.5", BadParameter, "not defined for beauty_contest"),
    ],
)
def test_what_cannot_be_mixed(name, error, said):
    with pytest.raises(error, match=said):
        make_player(name, GAME)


def test_a_mixture_needs_players_and_a_weight_for_each():
    with pytest.raises(BadParameter, match="at least one player"):
        PlayerMixture([])
    with pytest.raises(BadParameter, match="got 1 players and the weights"):
        PlayerMixture([RandomPolicy()], [1, 2])


def test_the_log_of_a_training_counts_what_its_models_are_asked():
    from llm_games.wrappers.sb3_log import OpponentLog

    asking = make_player("tiny", GAME)
    log = OpponentLog([PlayerMixture([RandomPolicy(), asking])])
    assert log.clients == [asking.client]
