"""One seed is one game, through whatever door it is played; chance can be given."""

import numpy as np
import pytest
from playing import NAMES, each_row, every, legal_actions, sampled

import llm_games
from llm_games.codecs import codec
from llm_games.errors import BadParameter, UnknownName
from llm_games.noise import Noise
from llm_games.table import Table
from llm_games.view import Sight, Who
from llm_games.wrappers.play import play
from llm_games.wrappers.policy import Decision, Note, Policy
from llm_games.wrappers.single_agent import SingleAgentEnv


class Drawn(Policy):
    """Draws a legal action from its seat and the number of steps, not from its own randomness."""

    name = "drawn"

    def start(self, game, seat, seed):
        return 0

    def act(self, view, memory):
        rng = np.random.default_rng((view.seat, view.who.step))
        return Decision(sampled(view.question, rng)), memory + 1


def moves(table):
    views = [table.sight.view(seat) for seat in table.asked]
    return {view.seat: Drawn().act(view, 0)[0].action for view in views}


def by_play(game, seed):
    return [
        step.outcome.rewards.tolist() for step in play(game, [Drawn()] * game.players, seed).steps
    ]


def by_table(game, seed):
    table, found = Table(game), []
    table.reset(seed)
    while not table.state.over:
        found.append(table.step(moves(table)).rewards.tolist())
    return found


def by_env(game, seed, form):
    settings = {"form": form, "obs_mode": "numeric", "actions": "rules"}
    maker = {"parallel": llm_games.env.SimultaneousGame, "aec": llm_games.env.SequentialGame}
    env = maker[form](game, obs_mode="numeric", actions=settings["actions"])
    env.reset(seed=seed)
    found = []
    env.table.step, step = (lambda *a, **k: found.append(o := step(*a, **k)) or o), env.table.step
    for own in env.windows.codecs:  # moves as they are, in the rules' own form
        own.take = lambda view, move: move
    while not env.table.state.over:
        wanted = moves(env.table)
        names = {env.possible_agents[seat]: move for seat, move in wanted.items()}
        if form == "parallel":
            env.step(names)
            continue
        for _ in names:
            while env.terminations[env.agent_selection]:
                env.step(None)
            env.step(names[env.agent_selection])
    return [outcome.rewards.tolist() for outcome in found]


def by_learner(game, seed):
    env = SingleAgentEnv(game, opponents=Drawn(), seat=game.players - 1)
    found, step = [], env.table.step
    env.table.step = lambda *a, **k: found.append(o := step(*a, **k)) or o
    env.codec.take = lambda view, move: move
    env.reset(seed=seed)
    done = False
    while not done:
        if env.seat not in env.table.asked:
            break  # out before its first turn
        _, _, over, cut, _ = env.step(moves(env.table)[env.seat])
        done = over or cut
    return [outcome.rewards.tolist() for outcome in found]


def by_batch(game, seed):
    """Copy 3 of a batch whose copies have the seeds from ``seed - 3`` on."""
    state, found, step = game.reset(seed - 3, (5,)), [], 0
    while not state.over[3]:
        actions = np.zeros((game.players, 5), np.int64)
        for copy in range(5):
            table = Table(game)
            table.state, table.steps = state.table(copy), step
            table.sight = Sight(game, table.state, Who(step=step))
            if not table.state.over:
                actions[:, copy] = game.assemble(table.state, moves(table))
        state, outcome = game.step(state, actions)
        found.append(outcome.rewards[:, 3].tolist())
        step += 1
    return found


@every
def test_the_same_seed_is_the_same_game_through_every_door(name, more):
    game = llm_games.rules(name, **more)
    played = by_play(game, 8)
    assert played == by_table(game, 8)
    assert played == by_env(game, 8, "parallel")
    assert played == by_env(game, 8, "aec")
    assert played == by_batch(game, 8)
    if game.players > 1:
        found = by_learner(game, 8)  # which ends with the learner
        assert found == played[: len(found)]


@each_row("name", NAMES)
def test_a_reset_without_a_seed_takes_the_next_one(name):
    game = llm_games.rules(name)
    tables = [Table(game), Table(game), Table(game)]
    seeds = []
    for table, first in zip(tables, (4, 4, 5), strict=True):
        table.reset(first)
        own = [table.seed]
        for _ in range(3):
            table.reset()
            own.append(table.seed)
        seeds.append(own)
    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2]}) == 8


@every
def test_all_chance_is_drawn_before_play_and_can_be_given(name, more):
    game = llm_games.rules(name, **more)
    drawn = game.chance(Noise(3))
    other = game.chance(Noise(4))
    assert drawn.keys() == {draw.name for draw in game.draws()}
    state, copied = game.reset(3), game.reset(4, given=drawn)
    rng = np.random.default_rng(1)
    for _ in range(40):
        if state.over:
            break
        actions = legal_actions(game, state, rng)
        (state, one), (copied, two) = game.step(state, actions), game.step(copied, actions)
        assert np.array_equal(one.rewards, two.rewards)
        assert np.array_equal(game.observe(state), game.observe(copied))
    for name_of, values in other.items():
        assert values.shape == drawn[name_of].shape


@each_row(
    ("given", "error", "says"),
    [
        ({"endowment": [11, 12, 13]}, UnknownName, "did you mean 'endowments'"),
        ({"endowments": [11, 12, 13, 14]}, BadParameter, "numbers from 11 to 20 of shape"),
        ({"endowments": [1, 12, 13]}, BadParameter, "numbers from 11 to 20"),
        ({"endowments": ["a", 12, 13]}, BadParameter, "numbers from 11 to 20"),
        ({"endowments": [11.5, 12, 13]}, BadParameter, "numbers from 11 to 20"),
        ({"endowments": [True, 12, 13]}, BadParameter, "numbers from 11 to 20"),
        ({"endowments": [[11], [12, 13]]}, BadParameter, "or one for all"),
        (3, BadParameter, "chance must be given by name"),
    ],
)
def test_bad_chance_is_refused(given, error, says):
    env = llm_games.make("public_goods", players=3, initial_tokens="random")
    with pytest.raises(error, match=says):
        env.reset(seed=1, options={"chance": given})


def test_a_number_alone_is_given_for_all():
    goods = llm_games.rules("public_goods", players=3, initial_tokens="random")
    assert (goods.chance(Noise.copies(1, (4,)), {"endowments": 13})["endowments"] == 13).all()


@every
def test_a_table_that_is_not_over_asks_somebody(name, more):
    game = llm_games.rules(name, **more)
    for seed in range(3):
        state, rng = game.reset(seed), np.random.default_rng(seed)
        for _ in range(400):
            assert bool(state.over) != bool(game.asked(state).any())
            if state.over:
                break
            state, _ = game.step(state, legal_actions(game, state, rng))


@pytest.mark.parametrize("actions", ["index", "unit"])
@every
def test_random_play_of_indexes_and_shares_is_legal(name, more, actions):
    env = llm_games.make(name, obs_mode="numeric", actions=actions, form="parallel", **more)
    for seed in range(3):
        observations, infos = env.reset(seed=seed)
        rng = np.random.default_rng(seed)
        for _ in range(80):
            if not env.agents:
                break
            chosen = {}
            for agent in env.agents:
                space, mask = env.action_space(agent), None
                if isinstance(observations[agent], dict):
                    mask = observations[agent]["action_mask"]
                    assert mask.any()
                    assert infos[agent]["asked"] or mask.tolist() == [1] + [0] * (len(mask) - 1)
                space.seed(int(rng.integers(2**31)))
                chosen[agent] = space.sample(mask) if mask is not None else space.sample()
            observations, _, _, _, infos = env.step(chosen)
            assert not any(info["broke"] for info in infos.values())


@every
def test_index_spaces_start_at_0_and_no_box_is_of_integers(name, more):
    game = llm_games.rules(name, **more)
    space = codec(game, 0, "index").space
    assert space.start == 0
    assert space.n <= 256
    unit = codec(game, 0, "unit").space
    assert (unit.dtype, unit.low.min(), unit.high.max()) == (np.float32, -1, 1)


class Learns(Drawn):
    """Notes down how often it has decided, and recalls it in the next game."""

    def __init__(self):
        self.recalled = []

    async def finish(self, view, memory):
        return Decision(0, notes=(Note("lesson", {"decided": memory}),))

    def recall(self, memory, notes):
        self.recalled.append([note.content for note in notes])
        return memory


def test_opponents_of_a_learner_look_back_and_recall_as_in_play():
    opponent = Learns()
    env = SingleAgentEnv("public_goods", players=3, rounds=2, opponents=[opponent, Drawn()])
    for _ in range(2):
        env.reset(seed=1)
        done = False
        while not done:
            _, _, done, _, _ = env.step(3)
    assert opponent.recalled == [[{"decided": 2}]]
    env.reset(seed=1)
    assert opponent.recalled == [[{"decided": 2}]] * 2


@pytest.mark.parametrize("form", ["parallel", "aec"])
def test_observations_are_worked_out_once_a_step(form, monkeypatch):
    env, counted = llm_games.make("public_goods", form=form, players=3, obs_mode="numeric"), []
    observe = type(env.game).observe
    monkeypatch.setattr(
        type(env.game), "observe", lambda game, state: counted.append(1) or observe(game, state)
    )
    env.reset(seed=1)
    for _ in range(4):
        if form == "parallel":
            env.step(dict.fromkeys(env.agents, 2))
            env.state()
        else:
            for _ in range(3):
                env.last()
                env.last()
                env.step(2)
    env.last() if form == "aec" else None
    assert len(counted) == 5
