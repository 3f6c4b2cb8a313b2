"""Talk before moves: who speaks when, who hears it, how it looks, and that it changes nothing."""

import pickle
import re
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test
from playing import NAMES, each_row, equal, legal_actions, of_three
from test_vector_env import alike, pair, play_both

import llm_games as lg
from llm_games.baselines.regret import regret
from llm_games.errors import BadParameter, IllegalAction, UnknownName
from llm_games.facts import Fact
from llm_games.noise import Noise
from llm_games.questions import MISSING, Integer
from llm_games.rounds import Rounds
from llm_games.rulebook import Rulebook
from llm_games.table import Table
from llm_games.table_batch import Tables
from llm_games.talk import Talk, Talking, Utterance
from llm_games.talk.rules import _COPIED
from llm_games.wrappers.policy import Decision, Policy, RandomPolicy
from llm_games.wrappers.team_env import TeamVectorEnv


@dataclass(frozen=True)
class Spots(Rounds):
    """Everybody stands somewhere, in each round elsewhere, and names a number; the first is out."""

    name: ClassVar[str] = "spots"
    title: ClassVar[str] = "Spots"
    source: ClassVar[str] = "this test"
    spots: tuple = (((0, 0),) * 4,)  # where all stand, by round
    leaves: bool = False  # player 0 is out after the first round

    def bounds(self):
        return 0, 9

    def pay(self, state, actions, broke):
        return actions * 1.0, {}, {}

    def alive(self, state):
        gone = self.leaves & (state.round > 0) & (self.seats(state) == 0)
        return ~gone & ~state.over

    def positions(self, state):
        spots = np.array(self.spots)[np.minimum(state.round, len(self.spots) - 1)]
        return np.moveaxis(spots, (-2, -1), (0, 1))

    def known(self):
        return (self.now,)

    def asks(self, state, seat):
        return Integer("number", 0, 9)

    def spectacle(self, state):
        return "", {}


@dataclass(frozen=True)
class Still(Spots):
    name: ClassVar[str] = "still"
    wordless: ClassVar[str] = "its players do not know of each other"


def seated(game=Spots, players=4, talk=None, **parameters):
    table = Table(lg.rules(game, players=players, talk=talk, **parameters))
    table.reset(3)
    return table


def shown(table, seat):
    return [said.seat for said in table.game.heard(table.state, seat)]


def round_of(table, text="I name 5."):
    """Play a round in which all say something; return speakers and what each was shown.

    Before speaking, by speech, and before the move, by seat.
    """
    speakers, before = [], []
    while table.sight.talking:
        asked = table.asked
        speakers += asked
        before += [shown(table, seat) for seat in asked]
        table.step(dict.fromkeys(asked, text))
    then = [shown(table, seat) for seat in range(table.game.players)]
    table.step(dict.fromkeys(table.asked, 5))
    return speakers, before, then


# -- the specification's worked examples --------------------------------------------------------
@each_row(
    ("talk", "seen", "at_the_move"),
    [
        ({}, [0, 1, 2, 3, 4, 5], 6),
        ({"own": "hidden"}, [0, 1, 2, 2, 3, 4], 4),
        ({"mode": "together"}, [0, 0, 0, 3, 3, 3], 6),
    ],
)
def test_a_who_sees_how_much(talk, seen, at_the_move):
    speakers, before, then = round_of(
        seated(players=3, talk={"turns": 2, "order": "fixed", **talk})
    )
    assert speakers == [0, 1, 2, 0, 1, 2]
    assert [*map(len, before)] == seen
    assert [*map(len, then)] == [at_the_move] * 3


def test_a_of_24_players_the_last_has_seen_47():
    _, before, _ = round_of(seated(players=24, talk={"turns": 2}))
    assert [*map(len, before)] == [*range(48)]


def test_b_order():
    talk = {"turns": 2, "order": [2, 0, 3, 1]}
    assert round_of(seated(talk=talk))[0] == [2, 0, 3, 1, 2, 0, 3, 1]
    speakers, _, then = round_of(seated(talk=talk | {"silent": [3]}))
    assert speakers == [2, 0, 1, 2, 0, 1]
    assert then[3] == speakers


def test_b_order_of_chance():
    """The same in all turns of a round or not, another in each round, all orders as often."""
    for order in ("shuffled", "shuffled_per_round"):
        table = seated(talk={"turns": 2, "order": order})
        rounds = [round_of(table)[0] for _ in range(12)]
        assert all(sorted(r[:4]) == sorted(r[4:]) == [0, 1, 2, 3] for r in rounds)
        assert all(r[:4] == r[4:] for r in rounds) == (order == "shuffled_per_round")
        assert len({tuple(r[:4]) for r in rounds}) > 6
    game = lg.rules(Spots, players=3, talk={"turns": 1})
    orders = game.reset(0, (6000,)).order
    counts = np.unique(orders, axis=1, return_counts=True)[1]
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)


PLACES = (((11, 10), (13, 14), (14, 14), (10, 10)),)
NEAR = {"turns": 1, "audience": "radius", "own": "hidden", "heard_order": "nearest"}


def test_c_radius_and_nearest():
    talk = NEAR | {"order": [3, 1, 2, 0]}
    speakers, before, then = round_of(seated(talk=talk, spots=PLACES))
    assert dict(zip(speakers, before, strict=True)) == {3: [], 1: [3], 2: [1], 0: [3, 1, 2]}
    assert then == [[3, 1, 2], [2, 0, 3], [1, 0], [0, 1]]


@each_row(("radius", "hear"), [(5, True), ("4.9", False), (0, False)])
def test_c_the_boundary_hears(radius, hear):
    talk = {"turns": 1, "audience": "radius", "radius": radius, "order": "fixed"}
    then = round_of(seated(talk=talk, players=2, spots=(((0, 0), (3, 4)),)))[2]
    assert then[0] == ([0, 1] if hear else [0])


@each_row(("memory", "count"), [(0, 1), (2, 5), ("all", 7)])
def test_d_memory(memory, count):
    table = seated(players=2, talk={"turns": 1, "order": "fixed", "memory": memory})
    for _ in range(3):
        round_of(table)
    assert len(round_of(table)[1][1]) == count


def test_d_what_was_heard_once_stays_and_nothing_else_comes():
    near, far = ((0, 0), (0, 1)), ((0, 0), (9, 9))
    talk = {"turns": 1, "audience": "radius", "memory": "all", "order": "fixed", "own": "hidden"}
    for spots, heard in (((near, far), 1), ((far, near), 1), ((far, far), 0)):
        table = seated(players=2, talk=talk, spots=spots)
        round_of(table)
        assert len(round_of(table)[2][1]) == heard


def test_e_length():
    table = seated(players=2, talk={"turns": 1, "words": 49, "order": "fixed"})
    table.step({0: " ".join(map(str, range(52)))})
    (said,) = table.game.heard(table.state, 1)
    assert said == Utterance(1, 1, 0, " ".join(map(str, range(49))), (1,))
    table.step({1: ""})
    assert shown(table, 0) == shown(table, 1) == [0]


@each_row("name", NAMES)
def test_f_the_same_game_with_and_without_talk(name):
    """All states, chance and payoffs of a game whose players ignore what they say."""
    few = of_three(name) if name != "emergency_evacuation" else {"players": 12}
    silent, table = Table(lg.rules(name, **few)), Table(lg.rules(name, talk_turns=2, **few))
    for one in (silent, table):
        one.reset(7)
    rng = np.random.default_rng(0)
    for step in range(12):
        spoken = 0
        while table.sight.talking:
            assert not table.step({table.asked[0]: f"{step}"}).rewards.any()
            spoken += 1
        assert equal(table.state.game, silent.state)
        if silent.state.over:
            break
        actions = legal_actions(silent.game, silent.state, rng)
        silent.state, outcome = silent.game.step(silent.state, actions)
        table.state, other = table.game.step(table.state, actions)
        assert other.rewards.tolist() == outcome.rewards.tolist()
        for one in (silent, table):
            one._enter(one.state)
    assert step


# -- other settings -----------------------------------------------------------------------------
@each_row(
    ("talk", "heard"),
    [
        ({"audience": "groups", "groups": ["a", "b", "a", "b"]}, [[2], [3], [0], [1]]),
        (
            {"audience": [[0, 1, 0, 0], [0, 1, 0, 1], [0] * 4, [1, 1, 1, 1]]},
            [[3], [0, 3], [3], [1]],
        ),
        ({"speakers": [1, 2]}, [[1, 2], [2], [1], [1, 2]]),
        ({"speakers": [1, 2], "silent": [1]}, [[2], [2], [], [2]]),
    ],
)
@each_row("mode", ["one_by_one", "together"])
@each_row("alphabet", [None, 3])
def test_who_hears_whom(talk, heard, mode, alphabet):
    more = {"turns": 1, "own": "hidden", "order": "fixed", "mode": mode, "alphabet": alphabet}
    assert round_of(seated(talk=talk | more), "words" if alphabet is None else 2)[2] == heard


def test_who_is_out_neither_speaks_nor_hears():
    table = seated(talk={"turns": 2, "order": "fixed"}, leaves=True)
    assert round_of(table)[0] == [0, 1, 2, 3] * 2
    assert table.asked == [1]
    outcome = table.step({1: "hello"})
    assert outcome.record["hearers"].tolist() == [[], [2, 3], [], []]
    assert round_of(table)[0] == [2, 3, 1, 2, 3]


def test_turns_by_round():
    table = seated(players=2, talk={"turns": [0, 1, 2], "order": "fixed"}, rounds=3)
    assert [round_of(table)[0] for _ in range(3)] == [[], [0, 1], [0, 1] * 2]
    assert table.state.over
    assert table.steps == 9 == table.game.length()


def test_deciders_alone():
    """Of those who vote or propose, not all."""
    table = seated("pirate_game", talk={"turns": 1, "speakers": "deciders"})
    assert table.sight.talking
    assert table.asked == [0]
    table.step({0: "All for me."})
    assert not table.sight.talking
    table.step({0: (100, 0, 0, 0)})
    assert not table.sight.talking  # once a round: no talk before the vote
    table.step({1: 0, 2: 0, 3: 0})
    assert table.sight.talking
    assert table.asked == [1]


def test_where_nobody_may_speak_a_round_has_no_talk():
    """Not even before its next move, whose deciders could."""
    table = seated("pirate_game", talk={"turns": 1, "speakers": "deciders", "silent": [0]})
    assert not table.sight.talking
    table.step({0: (100, 0, 0, 0)})
    assert not table.sight.talking
    table.step({1: 0, 2: 0, 3: 0})
    assert table.asked == [1]
    assert table.sight.talking


@each_row(("mode", "steps"), [("one_by_one", 2 * 3), ("together", 2)])
def test_steps_of_a_talk(mode, steps):
    """Exactly one speaker a step at each table, or all of a turn."""
    game = lg.rules(Spots, players=4, talk={"turns": 2, "mode": mode, "silent": [2]})
    tables = Tables(game, 6)
    tables.reset([*range(6)])
    for _ in range(steps):
        assert tables.sight.talking.all()
        assert (tables.sight.turn.sum(axis=0) == (1 if mode == "one_by_one" else 3)).all()
        assert not tables.sight.turn[2].any()
        tables.step(np.full((4, 6), "?", object))
    assert not tables.sight.talking.any()
    assert tables.sight.turn.all()


def test_all_parameters_are_in_the_docs():
    text = (Path(__file__).parents[1] / "docs" / "talk.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)[: len(fields(Talk))] == [
        field.name for field in fields(Talk)
    ]


def test_what_is_recorded_of_a_speech():
    table = seated(players=3, talk={"turns": 2, "order": "fixed"})
    record = table.step({0: 'He said: "go"\n'}).record
    plain = {name: np.asarray(value).tolist() for name, value in record.items()}
    actions = ['He said: "go"', "", ""]
    assert plain == {"phase": "talk", "turn": 1, "actions": actions, "hearers": [[1, 2], [], []]}


@each_row("said", [MISSING, None, 7, ("a",), "   "])
def test_what_is_no_text_is_silence_and_breaks_no_rule(said):
    table = seated(talk={"turns": 1, "order": "fixed"}, failed_reply="void_run")
    outcome = table.step({0: said})
    assert not outcome.broke.any()
    assert not table.state.void
    assert shown(table, 1) == []
    assert table.asked == [1]


@each_row("said", [MISSING, -1, 4, "3", None])
def test_what_is_no_symbol_is_silence(said):
    table = seated(talk={"turns": 1, "order": "fixed", "alphabet": 3})
    outcome = table.step({0: said})
    assert outcome.record["actions"].tolist() == [0, 0, 0, 0]
    assert not outcome.broke.any()


# -- how a game comes to talk ---------------------------------------------------------------------
def test_ways_to_say_it():
    one = lg.rules("public_goods", talk={"turns": 2, "words": 5})
    assert one == lg.rules("public_goods", talk_turns=2, talk_words=5)
    assert one == lg.rules("public_goods", talk=Talk(turns=2, words=5))
    assert one == lg.rules(lg.rules("public_goods"), talk={"turns": 2, "words": 5})
    assert one == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert one != lg.rules("public_goods", talk_turns=2)
    assert one.core == lg.rules("public_goods")
    assert (one.name, one.tokens, one.players) == ("public_goods", 20, 10)
    preset = lg.rules("beauty_contest", preset="shall_we_talk")
    assert isinstance(preset, Talking)
    assert preset.talk.turns == 2


@each_row("talk", [{}, {"turns": 0}, {"turns": [0] * 20, "words": 3}])
def test_a_silent_game_is_the_game_itself(talk):
    assert lg.rules("public_goods", talk=talk) == lg.rules("public_goods")
    preset = lg.rules("beauty_contest", preset="shall_we_talk", talk={"turns": 0})
    assert not isinstance(preset, Talking)


@each_row(
    ("talk", "why"),
    [
        ({"turns": -1}, "turns, or each of them, must be an integer of at least 0"),
        ({"turns": True}, "turns"),
        ({"turns": [1, 2]}, "one for each of 20 rounds, got 2"),
        ({"order": "random"}, "'shuffled', 'shuffled_per_round', 'fixed' or a list of seats"),
        ({"order": [0, 1]}, "order must name all 4 seats, got [0, 1]"),
        ({"order": [0, 1, 1, 2]}, "order must name each seat once"),
        ({"order": [0, 1, 2, 4]}, "order must be seats 0 to 3, got 4"),
        ({"mode": "both"}, "mode must be one of 'one_by_one', 'together'"),
        ({"speakers": "some"}, "speakers must be 'all', 'deciders' or a list of seats"),
        ({"speakers": [4]}, "speakers must be seats 0 to 3, got 4"),
        ({"speakers": []}, "leave nobody who speaks"),
        ({"silent": [0, 1, 2, 3]}, "leave nobody who speaks"),
        ({"silent": "player_0"}, "silent must be a list of seats"),
        ({"audience": "some"}, 'audience must be "all", "radius", "groups" or a matrix'),
        ({"audience": [[1, 0], [0, 1]]}, "audience must have 4 rows of 4"),
        ({"audience": [[0] * 4] * 4}, "audience names nobody"),
        ({"audience": [[2] * 4] * 4}, "a matrix of 0 and 1"),
        ({"audience": "groups"}, "groups must be 4 labels, one for each player, got none"),
        ({"audience": "groups", "groups": ["a", "b"]}, "one for each player, got 2"),
        ({"audience": "groups", "groups": ["a", "b", "c", "d"]}, "audience names nobody"),
        ({"groups": ["a", "a", "b", "b"]}, "groups are for audience"),
        ({"groups": "abcd"}, "groups must be a label for each player"),
        ({"radius": -1}, "radius must be at least 0"),
        ({"radius": "near"}, "radius must be a finite number"),
        ({"heard_order": "far"}, "heard_order must be one of 'time', 'nearest'"),
        ({"own": True}, "own must be one of 'shown', 'hidden'"),
        ({"memory": "some"}, 'memory must be "all"'),
        ({"words": 0}, "words must be an integer of at least 1"),
        ({"numbers": "none"}, "numbers must be one of 'free', 'discouraged'"),
        ({"alphabet": 0}, "alphabet must be an integer of at least 1"),
        ({"announce": 1}, "announce must be one of False, True"),
        ({"reasks": -1}, "reasks must be an integer of at least 0"),
    ],
)
def test_bad_parameters_are_refused_by_name(talk, why):
    with pytest.raises(BadParameter, match=f"talk.*{re.escape(why)}"):
        lg.rules(Spots, players=4, talk={"turns": 1} | talk)


@each_row(
    ("game", "parameters", "why"),
    [
        ("public_goods", {"audience": "radius"}, '"radius" needs positions, which public_goods'),
        ("public_goods", {"heard_order": "nearest"}, '"nearest" needs positions'),
        (Still, {}, "cannot be placed in still: its players do not know of each other"),
    ],
)
def test_talk_that_a_game_cannot_place(game, parameters, why):
    with pytest.raises(BadParameter, match=why):
        lg.make(game, players=4, talk={"turns": 1} | parameters)


def test_names_that_do_not_exist():
    with pytest.raises(UnknownName, match=r"parameter of talk 'turn'; did you mean 'turns'"):
        lg.rules("public_goods", talk={"turn": 1})
    with pytest.raises(UnknownName, match=r"parameter of talk 'word'"):
        lg.rules("public_goods", talk_word=1)
    with pytest.raises(BadParameter, match=r'talk must be such as {"turns": 2}, got 2'):
        lg.rules("public_goods", talk=2)
    with pytest.raises(BadParameter, match=r"nobody|somebody"):
        lg.rules("water_allocation", preset=None, players=1, talk={"turns": 1})


# -- batches, seeds, other seats ------------------------------------------------------------------
TALKS = [
    {"turns": 2},
    {"turns": 1, "speakers": "deciders", "memory": 1},
    {"turns": 2, "mode": "together", "order": "shuffled_per_round"},
]


def speeches(game, sight, rng):
    if game.symbols:
        return rng.integers(-1, game.symbols + 1, (game.players, len(sight.state.round)))
    return rng.choice(np.array(["go", "", "player_1 is out", "1 2 3"], object), sight.turn.shape)


@each_row("alphabet", [None, 2])
@each_row("talk", TALKS)
@each_row("name", ["battle_royale", "pirate_game", "beauty_contest"])
def test_a_batch_is_a_loop(name, talk, alphabet):
    """Of tables that soon are out of step: some talk, some move, some are over."""
    game, rng = (
        lg.rules(name, players=4, talk=talk | {"alphabet": alphabet}),
        np.random.default_rng(1),
    )
    many, seeds = Tables(game, 5), [11, 3, 8, 1, 20]
    many.reset(seeds)
    loop = [Table(game) for _ in seeds]
    for table, seed in zip(loop, seeds, strict=True):
        table.reset(seed)
    mixed = 0
    for step in range(40):
        talking, said = many.sight.talking, speeches(game, many.sight, rng)
        mixed += 0 < talking.sum() < 5
        actions = np.zeros(said.shape, said.dtype)
        for i, table in enumerate(loop):
            if talking[i]:
                actions[:, i] = said[:, i]
            elif not table.state.over:
                actions[:, i] = legal_actions(game, table.state, rng)
        part = None if step % 3 else np.array([0, 2, 4])
        outcome = many.step(actions, part)
        for place, i in enumerate(range(5) if part is None else part):
            state, own = game.step(loop[i].state, actions[:, i])
            loop[i]._enter(state)
            assert own.rewards.tolist() == outcome.rewards[:, place].tolist()
            assert own.finished.tolist() == outcome.finished[:, place].tolist()
        for i, table in enumerate(loop):
            one = many.state.table(i)
            assert equal(one, table.state)
            assert equal(one.game, table.state.game)
            alike(many.sight.numbers[:, i], table.sight.numbers)
    assert mixed or name == "beauty_contest"


def test_the_same_seed_is_the_same_talk_through_every_door():
    orders = []
    for play in ("play", "table", "env"):
        table = seated(players=5, talk={"turns": 1}, rounds=2)
        if play == "env":
            env = lg.make(Spots, players=5, rounds=2, talk={"turns": 1}, actions="text",
                          obs_mode="numeric")  # fmt: skip
            env.reset(seed=3)
            table = env.table
        orders.append([round_of(table)[0] for _ in range(2)])
    assert orders[0] == orders[1] == orders[2]
    given = Table(lg.rules(Spots, players=5, talk={"turns": 1}))
    given.reset(9, {"talk_order": int(Noise(3).of("talk_order").key)})
    assert round_of(given)[0] == orders[0][0]


def test_the_order_of_speakers_can_be_given_by_round_and_turn():
    rows = [[[2, 0, 1], [1, 0, 2]], [[0, 1, 2], [2, 1, 0]]]
    game = lg.rules(Spots, players=3, talk={"turns": 2}, rounds=2)
    table = Table(game)
    table.reset(0, {"talk_order": rows})
    spoke = [seat for seats in (round_of(table)[0] for _ in range(2)) for seat in seats]
    assert spoke == [seat for turns in rows for order in turns for seat in order]
    batch = game.chance(Noise(np.arange(4, dtype=np.uint64)), {"talk_order": rows})["talk_order"]
    assert batch.shape == (2, 2, 3, 4)
    for wrong in ([[[0, 0, 1]]], [[0, 1, 2]], [], [[["a", "b", "c"]]], [[[0, 1]]]):
        with pytest.raises(BadParameter, match="talk_order"):
            table.reset(0, {"talk_order": wrong})
    fixed = Table(lg.rules(Spots, players=3, talk={"turns": 2, "order": "fixed"}))
    with pytest.raises(BadParameter, match="goes with order shuffled"):
        fixed.reset(0, {"talk_order": rows})


def test_players_who_change_seats_hear_the_same():
    """Whatever is said of seats is permuted with them."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        seats, order = rng.permutation(4), rng.permutation(4)  # player i sits in seats[i]
        audience, speakers = rng.integers(0, 2, (4, 4)), rng.permutation(4)[:3]
        audience[speakers[0], speakers[1]] = 1
        moved = np.zeros((4, 4), int)
        moved[np.ix_(seats, seats)] = audience
        own = {"order": order, "audience": audience, "speakers": speakers}
        other = {"order": seats[order], "audience": moved, "speakers": seats[speakers]}
        _, _, then = round_of(seated(talk={"turns": 2} | {k: v.tolist() for k, v in own.items()}))
        talk = {"turns": 2} | {k: v.tolist() for k, v in other.items()}
        _, _, elsewhere = round_of(seated(talk=talk))
        assert [[int(seats[s]) for s in then[i]] for i in range(4)] == [
            elsewhere[int(seats[i])] for i in range(4)
        ]


def test_seats_without_words_are_not_waited_for():
    """Orders of the others stay as they are; where nobody has words, there is no talk."""
    table = seated(players=5, talk={"turns": 2, "order": "shuffled_per_round"})
    other = Table(table.game)
    other.reset(3)
    other.hush([1])
    other.hush([4])
    speakers, _, then = round_of(other)
    assert speakers == [seat for seat in round_of(table)[0] if seat not in (1, 4)]
    assert then[1] == speakers
    other.reset(3)
    other.hush(range(5))
    assert other.asked == [0, 1, 2, 3, 4]
    assert round_of(other)[0] == []


@each_row("form", ["aec", "parallel"])
@each_row("name", ["public_goods", "pirate_game", "english_auction"])
def test_where_nobody_has_words_an_environment_is_that_of_the_silent_game(name, form):
    envs = [lg.make(name, players=3, form=form, obs_mode="numeric", **talk)
            for talk in ({"talk": {"turns": 2}}, {})]  # fmt: skip
    one, other = envs
    assert one.action_spaces == other.action_spaces if hasattr(one, "action_spaces") else True
    seen = [env.reset(seed=5) for env in envs]
    alike(seen[0], seen[1])
    rng = np.random.default_rng(2)
    for _ in range(25):
        agents = [other.agent_selection] if form == "aec" else other.agents
        if not agents or not other.agents:
            break
        if form == "aec":
            alike(one.last(), other.last())
            done = other.terminations[agents[0]] or other.truncations[agents[0]]
            action = None if done else int(rng.integers(other.action_space(agents[0]).n))
            seen = [env.step(action) for env in envs]
        else:
            actions = {a: int(rng.integers(other.action_space(a).n)) for a in agents}
            seen = [env.step(actions) for env in envs]
        alike(seen[0], seen[1])
        assert one.agents == other.agents


# -- environments ---------------------------------------------------------------------------------
KINDS = ["index", "unit", "rules", "text", {"player_0": "text"}]


def conform(name, talk, kind, cycles=12):
    many = {"players": 12} if name == "emergency_evacuation" else of_three(name)
    more = {**many, "max_cycles": 2, "talk": talk}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they print about spaces
        numeric = lg.make(name, form="aec", actions=kind, obs_mode="numeric", **more)
        api_test(numeric, num_cycles=cycles)
        both = lg.make(name, form="parallel", actions=kind, obs_mode="both", **more)
        parallel_api_test(both, num_cycles=cycles)
        if isinstance(kind, str):
            check_env(lg.learner(name, actions=kind, **more), skip_render_check=True)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("name", "alphabet"), [("pirate_game", 2), ("sealed_bid_auction", None), ("el_farol_bar", 2)]
)
def test_talking_games_conform(name, alphabet, kind, capsys):
    mode = "together" if alphabet and kind == "unit" else "one_by_one"
    conform(name, {"turns": 1, "alphabet": alphabet, "mode": mode}, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_games_conform_with_talk(name, capsys):
    conform(name, {"turns": 1, "alphabet": 2}, "index", 6)


@each_row(
    ("name", "kind", "space"),
    [
        ("public_goods", "index", spaces.Discrete(21 + 3)),
        ("public_goods", "rules", spaces.Discrete(21 + 3)),
        ("public_goods", "unit", spaces.Box(-1, 1, (2,), np.float32)),
        ("pirate_game", "rules", spaces.MultiDiscrete([101, 101, 101, 2, 3])),
        ("sealed_bid_auction", "unit", spaces.Box(-1, 1, (2,), np.float32)),
    ],
)
def test_spaces_with_symbols(name, kind, space):
    env = lg.make(name, players=3, talk={"turns": 1, "alphabet": 2}, actions=kind)
    assert env.action_space("player_0") == space


def test_symbols_are_said_and_seen():
    env = lg.make("public_goods", players=3, talk={"turns": 1, "alphabet": 2, "order": "fixed"},
                  form="aec", obs_mode="numeric")  # fmt: skip
    env.reset(seed=1)
    columns = env.game.column_index
    for seat, symbol in enumerate((2, 0, 1)):
        seen = env.observe(f"player_{seat}")
        assert env.agent_selection == f"player_{seat}"
        assert np.flatnonzero(seen["action_mask"]).tolist() == [21, 22, 23]
        assert seen["observation"][columns["talk_turn"]] == 1
        env.step(21 + symbol)
    for seat, heard in enumerate([(0, 1), (2, 1), (2, 0)]):  # of the others, in order
        seen = env.observe(f"player_{seat}")
        assert np.flatnonzero(seen["action_mask"]).tolist() == [*range(21)]
        numbers = {n: int(seen["observation"][columns[n]]) for n in columns if n[:4] == "said"}
        assert [n for n in numbers if numbers[n]] == sorted(
            f"said_{symbol}_by_{place + 1}" for place, symbol in enumerate(heard)
        )
    for tokens in (5, 22, 7):  # a symbol is no move: the declared one is played
        env.step(tokens)
    assert [env.infos[a]["broke"] for a in env.agents] == [False, True, False]
    assert not any(env.observe("player_0")["observation"][columns[n]] for n in numbers)


def test_a_seat_with_texts_speaks_among_seats_without_words():
    env = lg.make("public_goods", players=3, talk={"turns": 2}, actions={"player_1": "text"})
    env.reset(seed=1)
    tokens = {"player_0": 0, "player_2": 0}
    for outcome, said in (("valid", '{"speech": "All in?"}'), ("unparsable", "no JSON")):
        assert env.table.asked == [1]
        *_, infos = env.step({"player_1": said})
        assert infos["player_1"]["outcome"] == outcome
    assert env.table.asked == [0, 1, 2]
    assert '"All in?"' in env.observe_text("player_0")
    env.step(tokens | {"player_1": '{"tokens_contributed": 20}'})
    assert env.table.asked == [1]


@each_row(("alphabet", "silence"), [(None, ""), (3, 0)])
@each_row("reply", ["no JSON", '{"speech": 99}'])
def test_what_is_told_of_a_bad_speech_is_the_silence_it_was(alphabet, silence, reply):
    talk = {"turns": 1, "order": "fixed", "alphabet": alphabet}
    env = lg.make("public_goods", players=2, talk=talk, actions="text")
    env.reset(seed=1)
    *_, infos = env.step({"player_0": reply})
    assert infos["player_0"]["played"] == silence


def test_where_nobody_has_words_nothing_tells_of_talk():
    """A learner without words hears those who have some."""
    talks = {"turns": 2}, {"turns": 0}
    envs = [lg.make("public_goods", players=3, talk=talk) for talk in talks]
    assert envs[0].reset(seed=1)[0] == envs[1].reset(seed=1)[0]
    for who, silent in (("rational", True), ("announcer:rational", False)):
        game = {"players": 3, "obs_mode": "text", "opponents": lg.player(who)}
        one, other = (lg.learner("public_goods", **game, talk=talk) for talk in talks)
        assert (one.reset(seed=1)[0] == other.reset(seed=1)[0]) is silent


@each_row(("reasks", "asked"), [(0, 1), (2, 3)])
def test_a_speech_is_asked_for_again_as_the_talk_says(reasks, asked):
    talk = {"turns": 1, "order": "fixed", "reasks": reasks}
    env = lg.make("public_goods", players=2, talk=talk, actions="text", reask=7, form="aec")
    env.reset(seed=1)
    count = 0
    while env.agent_selection == "player_0":
        env.step("no JSON")
        count += 1
    assert count == asked


@each_row(("actions", "seat"), [("index", "rotate"), ("unit", 1)])
@each_row("name", ["battle_royale", "pirate_game"])
@each_row("alphabet", [None, 2])
def test_learners_at_many_tables_are_a_loop(name, seat, actions, alphabet):
    game = lg.rules(name, players=3, talk={"turns": 2, "alphabet": alphabet})
    vector, loop = pair(game, seat=seat, actions=actions, max_cycles=3, regret=regret)
    assert play_both(vector, loop, 24)


def test_regret_is_of_the_moves_of_those_tables_that_move():
    """Some tables talk in words while others move; a speech has no regret."""
    game = lg.rules("battle_royale", players=3, talk={"turns": 1, "speakers": "deciders"})
    seen = []

    def regret(core, record):
        seen.append(record["actions"].dtype.kind)
        return np.where(record["actions"] >= 0, 1.0, 0.0)

    vector, loop = pair(game, seat=1, max_cycles=4, opponents=Chatty(), regret=regret)
    assert play_both(vector, loop, 12)
    assert {*seen} == {"i"}


class Chatty(RandomPolicy):
    name = "chatty"
    speaks = True

    def act(self, view, memory):
        if not view.sight.talking:
            return super().act(view, memory)
        heard = [said["text"] for said in view.told["talk"]["heard"]]
        return Decision(f"{view.seat} after {len(heard)}: {''.join(heard)[:9]}"), memory

    start_batch, decide_batch = Policy.start_batch, Policy.decide_batch


@each_row("mode", ["numeric", "text"])
@each_row("seat", [1, "random"])
def test_opponents_speak_in_words_at_many_tables_as_in_a_loop(seat, mode):
    game = lg.rules("battle_royale", players=3, talk={"turns": 1, "speakers": "deciders"})
    settings = {"seat": seat, "max_cycles": 4, "obs_mode": mode, "opponents": Chatty()}
    vector, loop = pair(game, **settings)
    assert play_both(vector, loop, 12)


def test_learners_at_many_tables_say_nothing_in_words():
    with pytest.raises(BadParameter, match=r"talk in symbols"):
        lg.learners("public_goods", 2, talk={"turns": 1}, actions="text")


@each_row("alphabet", [None, 2])
def test_all_seats_learn_with_talk(alphabet):
    """Whoever has no words plays on as in the silent game."""
    talk = {"turns": 1, "alphabet": alphabet}
    team = TeamVectorEnv("beauty_contest", 3, players=3, rounds=2, talk=talk)
    _, infos = team.reset(seed=1)
    talking = sum(infos[a]["asked"] for a in team.agents).tolist()
    assert talking == ([1, 1, 1] if alphabet else [3, 3, 3])
    rng = np.random.default_rng(0)
    for _ in range(2 * (4 if alphabet else 1)):
        masks = team.action_masks()
        actions = {a: np.array([rng.choice(np.flatnonzero(m)) for m in masks[a]]) for a in masks}
        _, _, ended, _, infos = team.step(actions)
    assert ended["player_0"].all()
    wrong = dict.fromkeys(team.agents, np.full(3, 999))
    with pytest.raises(IllegalAction):
        team.step(wrong)


def test_whatever_a_game_says_of_itself_is_asked_of_it():
    """What games override of a rulebook, talk hands on, or never asks."""
    handed_on = {*vars(Talking), *_COPIED}
    never = {"check", "former_defaults", "instead", "kept_by_presets", "mend", "seats"}
    never |= {"state_type", "wordless"}
    never |= {
        "effective",
        "fictions",
        "passes_over",
        "payable",
        "pot",
        "repeated",
        "silent",
        "talks",
        "told",
    }
    never |= {"encode", "first", "march", "sold", "uneven", "unplayed", "_exact_by"}
    never |= {"laddered", "ladder", "rungs"}  # of masks, which talk makes of the game's own
    for name in NAMES:
        kinds = type(lg.rules(name)).__mro__
        for kind in kinds[: kinds.index(Rulebook)]:
            own = {word for word in vars(Rulebook) if word in vars(kind) and word[:2] != "__"}
            assert own <= handed_on | never, name


def test_a_plan_is_drafted_as_without_talk():
    game = lg.rules("pirate_game", players=3, talk={"turns": 1})
    numbers, plan = np.zeros(len(game.column_index)), np.array([7, 2, 0])
    drafted = game.drafted(numbers.copy(), plan)
    assert drafted.tolist() == game.core.drafted(numbers, plan).tolist()
    assert drafted.any()


def test_what_is_told_and_drawn():
    table = seated(players=3, talk={"turns": 1, "order": "fixed"})
    table.step({0: "Hello"})
    told = table.sight.view(1).told
    assert told["round"] == 1
    said = {"round": 1, "turn": 1, "seat": 0, "text": "Hello", "name": "player_0", "own": False}
    assert told["talk"] == {"turn": 1, "heard": [said]}
    assert "turn 1 of the talk" in table.picture()
    assert table.sight.view(1).core.told == {k: v for k, v in told.items() if k != "talk"}
    assert isinstance(table.sight.core.game, Spots)


def test_facts_of_the_game_come_first():
    silent, game = lg.rules(Spots), lg.rules(Spots, talk_turns=1, talk_alphabet=1)
    assert game.columns()[: len(silent.columns())] == silent.columns()
    assert isinstance(game.facts[0], Fact)
