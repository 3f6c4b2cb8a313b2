"""Players by name: full episodes in every game, batches, errors, and what each of them does."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from playing import QUICK, SMALL, by_game, each_row

from llm_games import game_rooms as rooms
from llm_games.baselines.players import PLAYERS, handed, make_player, players_for
from llm_games.baselines.regret import deviation
from llm_games.baselines.rules import Kind
from llm_games.errors import BadParameter, LLMGamesError, UnknownName
from llm_games.game_rooms import ROOMS as GAMES
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.view import View
from llm_games.wrappers.learned import LearnedPolicy
from llm_games.wrappers.policy import RandomPolicy
from llm_games.wrappers.single_agent import SingleAgentEnv

KINDS = ("rational", "random", "best_response", "cooperative")
FIXED = by_game("FIXED", "0")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def small(name, **parameters):
    return rulebook(name, **(QUICK[name] | parameters))


def play(game, players, seed=0):
    state = game.reset(seed)
    memories = [player.start(game, i, seed + i) for i, player in enumerate(players)]
    steps = []
    while not state.over and len(steps) < 200:
        moves = {}
        for seat in np.flatnonzero(game.asked(state)):
            view = View.of(game, state, seat)
            decision, memories[seat] = players[seat].act(view, memories[seat])
            assert type(decision.action) in (int, tuple)
            moves[int(seat)] = decision.action
        state, outcome = game.step(state, game.assemble(state, moves))
        steps.append((moves, outcome, state))
    assert state.over
    return steps


def play_batch(game, player, batch, seed=0):
    state = game.reset(seed, (batch,))
    memories = [player.start(game, i, seed + i) for i in range(game.players)]
    steps = []
    while not state.over.all() and len(steps) < 200:
        asked = game.asked(state)
        actions = np.zeros((game.players, batch), np.int64)
        for seat in np.flatnonzero(asked.any(axis=1)):
            decision, memories[seat] = player.act(View.of(game, state, seat), memories[seat])
            if decision.action.ndim == 2:  # a plan by seat, or a vote in the own row
                actions = np.where(asked[seat], actions + decision.action, actions)
            else:
                actions[seat] = np.where(asked[seat], decision.action, 0)
        before, (state, outcome) = state, game.step(state, actions)
        steps.append((before, actions, outcome, asked))
    assert state.over.all()
    return steps


def everybody(name, game):
    return [make_player(name, game)] * game.players


@pytest.mark.crossing
@pytest.mark.parametrize("kind", [*KINDS, "fixed"])
@pytest.mark.parametrize("name", GAMES)
def test_everybody_plays_a_whole_episode_legally(name, kind):
    game = small(name)
    full = f"fixed:{FIXED[name]}" if kind == "fixed" else kind
    for seed in range(3):
        for _, outcome, _ in play(game, everybody(full, game), seed):
            assert not outcome.broke.any()
    assert kind in players_for(name) or "fixed:<action>" in players_for(name)


@pytest.mark.crossing
@pytest.mark.parametrize("kind", [*KINDS, "fixed"])
@pytest.mark.parametrize("name", GAMES)
def test_batches_are_legal(name, kind):
    game = small(name)
    player = make_player(f"fixed:{FIXED[name]}" if kind == "fixed" else kind, game)
    for _, _, outcome, _ in play_batch(game, player, 5):
        assert not outcome.broke.any()


@each_row(
    ("name", "parameters"),
    [
        ("beauty_contest", {"preset": "econ_arena_H"}),  # limits on both sides of 2**32
        ("sealed_bid_auction", {"bid_range": "unbounded"}),
    ],
)
def test_random_moves_of_a_batch_are_those_of_its_tables(name, parameters):
    game, player = rulebook(name, **parameters), make_player("random")
    state = game.begin(game.chance(Noise(np.arange(20, dtype=np.uint64))), (20,))
    seed = np.arange(20, dtype=np.uint64)
    view = View.of(game, state, 0)
    moves = player.act(view, player.start(game, 0, seed))[0].action
    for i in range(20):
        alone = View.of(game, state.table(i), 0)
        assert player.act(alone, player.start(game, 0, i))[0].action == moves[i]


DRAWN = {"budget_auction", "el_farol_bar", "sealed_bid_auction"}


@pytest.mark.crossing
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in GAMES for kind in ("best_response", "cooperative", "rational")
     if kind == "cooperative" or name not in DRAWN],
)  # fmt: skip
def test_batch_equals_loop_where_nothing_is_drawn(name, kind):
    game = small(name)
    player = make_player(kind, game)
    for before, actions, _, asked in play_batch(game, player, 4):
        for i in range(4):
            table = before.table(i)
            for seat in np.flatnonzero(asked[:, i]):
                view = View.of(game, table, seat)
                action = player.act(view, player.start(game, seat, 1))[0].action
                expected = actions[:, i] if isinstance(action, tuple) else actions[seat, i]
                assert np.array_equal(action, expected)


@each_row("name", GAMES)
def test_play_repeats_from_a_seed(name):
    game = small(name)
    for kind in ("rational", "random"):
        one, two = (play(game, everybody(kind, game), 5) for _ in range(2))
        assert [moves for moves, _, _ in one] == [moves for moves, _, _ in two]


@each_row(
    ("name", "parameters"),
    [
        ("beauty_contest", {}),
        ("beauty_contest", {"ratio": "4/3"}),
        ("beauty_contest", {"preset": "econ_arena"}),
        ("divide_dollar", {}),
        ("divide_dollar", {"players": 7}),
        ("public_goods", {}),
        ("public_goods", {"ratio": 12}),
        ("public_goods", {"ratio": "1/2", "endowment": "carry"}),
        ("diners_dilemma", {}),
        ("sealed_bid_auction", {"price": "second"}),
        ("battle_royale", {"players": 4}),
        ("battle_royale", {"announce_cap": True}),
        ("pirate_game", {}),
        ("pirate_game", {"gold": 2}),
        ("pirate_game", {"quota": "majority"}),
    ],
)
def test_rational_players_have_no_regret(name, parameters):
    game = rulebook(name, **(SMALL[name] | parameters))
    for _, outcome, _ in play(game, everybody("rational", game)):
        found = deviation(game, outcome.record)
        assert found.nash_conv == pytest.approx(0, abs=1e-9)


def test_rational_players_go_as_often_as_the_mixed_equilibrium_says():
    game = rulebook("el_farol_bar", rounds=1)
    ((_, actions, outcome, _),) = play_batch(game, make_player("rational", game), 4000)
    assert actions.mean() == pytest.approx(0.606915, abs=0.01)
    assert outcome.rewards.sum(axis=0).mean() == pytest.approx(50, abs=1.5)


def test_rational_bidders_earn_what_the_equilibrium_pays():
    game = rulebook("sealed_bid_auction", rounds=20, valuation_draw="random")
    steps = play_batch(game, make_player("rational", game), 1000)
    mean = np.mean([outcome.rewards.mean() for _, _, outcome, _ in steps])
    assert mean == pytest.approx(2.63, abs=0.15)


def test_beauty_contest_best_response():
    game = rulebook("beauty_contest", players=4, rounds=3)
    fixed = [make_player(f"fixed:{k}", game) for k in (90, 60, 30)]
    steps = play(game, [make_player("best_response", game), *fixed])
    assert [moves[0] for moves, _, _ in steps] == [0, 36, 36]
    assert [bool(outcome.record["winners"][0]) for _, outcome, _ in steps] == [False, True, True]
    seen = rulebook("beauty_contest", players=4, rounds=2, reveal=("all_choices",))
    assert play(seen, [make_player("best_response", seen), *fixed])[1][0][0] == 36
    target = rulebook("beauty_contest", players=4, rounds=2, reveal=("target", "own_result"))
    assert play(target, [make_player("best_response", target), *fixed])[1][0][0] == 36
    blind = rulebook("beauty_contest", players=4, rounds=2, reveal=())
    assert play(blind, [make_player("best_response", blind), *fixed])[1][0][0] == 0


def test_divide_dollar_best_response_takes_what_is_left():
    game = rulebook("divide_dollar", rounds=3)
    ones = [make_player("fixed:1", game)] * 9
    steps = play(game, [make_player("best_response", game), *ones])
    assert [moves[0] for moves, _, _ in steps] == [10, 91, 91]
    tens = [make_player("fixed:12", game)] * 9
    steps = play(game, [make_player("best_response", game), *tens])
    assert [moves[0] for moves, _, _ in steps] == [10, 8, 6]


def test_el_farol_best_response():
    game = rulebook("el_farol_bar", rounds=2, mode="explicit")
    for goers, reply in ((5, 1), (6, 0)):
        others = [make_player(f"fixed:{'go' if i < goers else 'stay'}", game) for i in range(9)]
        steps = play(game, [make_player("best_response", game), *others])
        assert steps[1][0][0] == reply


def test_cooperative_players_reach_the_optimum():
    for name, best in (("el_farol_bar", 80), ("public_goods", 400), ("diners_dilemma", 50)):
        game = small(name, players=10)
        for _, outcome, _ in play(game, everybody("cooperative", game)):
            assert outcome.rewards.sum() == best
    game = small("el_farol_bar", players=10)
    went = sum(outcome.record["actions"] for _, outcome, _ in
               play(game, everybody("cooperative", game)))  # fmt: skip
    assert went.tolist() == [3] * 10
    game = small("battle_royale")
    assert play(game, everybody("cooperative", game))[-1][2].living.all()
    game = small("pirate_game", players=6, gold=20)
    (_, outcome, _) = play(game, everybody("cooperative", game))[-1]
    assert outcome.rewards.tolist() == [5, 3, 3, 3, 3, 3]


def test_cooperative_shooters_shoot_back():
    game = small("battle_royale", players=3, hit_rates=(0, 50, 50), max_shots=4)
    others = make_player("cooperative", game)
    steps = play(game, [make_player("fixed:player_2", game), others, others])
    assert [next(iter(moves.values())) for moves, _, _ in steps[:3]] == [2, -1, 0]


def test_levels():
    game = small("beauty_contest", rounds=1)
    for level, number in enumerate((50, 33, 22, 15)):
        assert play(game, everybody(f"level_k:{level}", game))[0][0][3] == number
    bar = small("el_farol_bar", players=10, rounds=1)
    for level, goes in ((1, 1), (2, 0), (3, 1), (4, 0)):
        assert play(bar, everybody(f"level_k:{level}", bar))[0][0] == dict.fromkeys(range(10), goes)
    royale = small("battle_royale", players=5)
    assert play(royale, everybody("level_k:1", royale))[0][0] == {0: 4}
    play(royale, everybody("level_k:0", royale))
    play(royale, everybody("level_k:2", royale))


def test_fixed_moves():
    auction = small("sealed_bid_auction", players=10)
    moves = play(auction, everybody("fixed:120", auction))[0][0]
    assert list(moves.values()) == [120, 30, 0, 80, 70, 120, 20, 110, 10, 100]
    real = rulebook("beauty_contest", preset="econ_arena")
    assert play(real, everybody("fixed:33.5", real))[0][0][0] == 33_500_000
    royale = small("battle_royale", players=5)
    for value, target in (("weakest", 1), ("strongest", 4), ("nobody", -1), ("player_2", 2)):
        assert play(royale, everybody(f"fixed:{value}", royale))[0][0] == {0: target}


@each_row(
    ("player", "game", "words"),
    [
        ("fixed:101", "beauty_contest", "from 0 to 100"),
        ("fixed:9.5", "divide_dollar", "a whole number from 0 to 100"),
        ("fixed:nan", "divide_dollar", "a whole number from 0 to 100"),
        ("fixed:maybe", "el_farol_bar", '"go" or "stay"'),
        ("fixed:player_9", "battle_royale", "strongest, weakest, nobody, player_0"),
        ("fixed:3", "pirate_game", "accept, reject"),
        ("fixed", "pirate_game", "fixed:<action>"),
        ("level_k:1", "public_goods", "battle_royale, beauty_contest, el_farol_bar"),
        ("level_k:x", None, "from 0 to 999"),
        ("level_k", None, "level_k:<level>"),
        ("rational:2", None, "takes no value"),
        ("shade:1.2", None, "a share from 0 to 1"),
        ("shade:half", None, "a share from 0 to 1"),
        ("shade", None, "shade:<share>"),
        ("human", None, "llm-games play GAME"),
        (3, None, "3 takes no seat: a player is a name such as 'rational'"),
        ("truthful", "public_goods", "english_auction, sealed_bid_auction"),
    ],
)
def test_what_cannot_be_played_is_refused_before_the_run(player, game, words):
    with pytest.raises(BadParameter, match=".*".join(words.split("\n"))):
        make_player(player, game and small(game))


@each_row(
    ("kind", "bids"),
    [
        ("truthful", [48, 60, 55, 41, 52]),
        ("shade:0.95", [45.6, 57, 52.25, 38.95, 49.4]),
        ("shade:1/3", [16, 20, 18.33, 13.66, 17.33]),
        ("all_in", [100, 90, 100, 100, 100]),
        ("zero", [0, 0, 0, 0, 0]),
    ],
)
def test_bidders_of_thumb(kind, bids):
    params = {"assets": [100, 90, 100, 100, 100], "valuations": [[48, 60, 55, 41, 52]]}
    game = rulebook("budget_auction", preset="econ_arena", **params)
    [(moves, outcome, _)] = play(game, everybody(kind, game))
    assert moves == {seat: round(100 * bid) for seat, bid in enumerate(bids)}
    assert not outcome.broke.any()
    plain = rulebook("sealed_bid_auction", players=3, rounds=1, valuations=[[10, 20, 30]])
    [(moves, _, _)] = play(plain, everybody(kind, plain))
    part = {"truthful": 1, "all_in": 1, "shade:0.95": 0.95, "shade:1/3": 1 / 3, "zero": 0}[kind]
    assert moves == {0: int(10 * part), 1: int(20 * part), 2: int(30 * part)}


@each_row(("player", "near"), [("ratoinal", "rational"), ("tiny:constrain", "tiny:constrained")])
def test_unknown_players_name_the_nearest(player, near):
    with pytest.raises(UnknownName, match=f"did you mean '{near}'"):
        make_player(player)


def test_a_provider_without_a_model_is_told_so():
    with pytest.raises(UnknownName, match="'vllm/' names no model: write vllm/NAME"):
        make_player("vllm/")


def test_a_setting_of_the_client_is_said_to_be_one():
    with pytest.raises(BadParameter, match=r"client=\{'base_url': \.\.\.\}"):
        make_player("openai:m", base_url="http://127.0.0.1:9/v1")


class Mirror(RandomPolicy):
    def __init__(self, side):
        self.name = side

    def start(self, game, seat, seed):
        if game.name != "pirate_game":
            raise BadParameter(f"not for {game.name}")
        return super().start(game, seat, seed)


def test_players_of_higher_floors_are_known(monkeypatch):
    with pytest.raises(UnknownName, match=r"did you mean 'recorded'.*known: .*all_in, .*knap"):
        make_player("recordde")
    with pytest.raises(LLMGamesError, match="no file"):
        make_player("recorded:run.db")
    kind = Kind("looks back", value="<side>", made=Mirror)
    monkeypatch.setitem(rooms.KINDS, "mirror", f"{__name__}:MIRROR")
    monkeypatch.setitem(globals(), "MIRROR", kind)
    assert make_player("mirror:left", "pirate_game").name == "left"
    assert players_for("pirate_game")["mirror:<side>"] == "looks back"
    with pytest.raises(BadParameter, match="takes no settings, got reasoning"):
        make_player("mirror:left", reasoning=True)
    with pytest.raises(BadParameter, match="not for public_goods"):
        make_player("mirror:left", "public_goods")


def test_errors_also_come_at_the_start_of_an_episode():
    game = small("public_goods")
    with pytest.raises(BadParameter, match="not defined for public_goods"):
        make_player("level_k:1").start(game, 0, 0)
    with pytest.raises(BadParameter, match="from 0 to 20"):
        make_player("fixed:21").start(game, 0, 0)


def rules_of(kind, rule):
    if isinstance(rule, partial) and len(rule.args) == 1:
        yield f"{kind}:{rule.args[0]}", rule.func
    yield kind, rule


@each_row("name", GAMES)
def test_each_game_says_what_its_best_response_is(name):
    room, listed = handed(name), players_for(name)["best_response"]
    assert room.assumed
    assert listed == f"replies best, {room.assumed}" != PLAYERS["best_response"].summary
    same = dict(rules_of("best_response", room.rules["best_response"]))
    for kind, said in room.rules.items():
        rule = said.rule if isinstance(said, Kind) else said
        if kind != "best_response" and rule in same.values() and rule is not None:
            named = [at.replace("best_response", kind) for at, of in same.items() if of is rule]
            assert any(f"it is {at}" in room.assumed for at in named), f"{name}: it is {named}"


def test_replies_by_chance_hang_on_the_seed_alone():
    game, player = small("public_goods"), make_player("mock")
    view = View.of(game, game.reset(0), 0)
    moves = [player.act(view, player.start(game, 0, seed % 20))[0].action for seed in range(40)]
    assert moves[:20] == moves[20:]
    assert len(set(moves)) > 5


def test_lists_of_players():
    for game in GAMES:
        listed = players_for(game)
        assert {"rational", "random", "best_response", "cooperative", "tiny", "mock"} <= set(listed)
        assert all(listed.values())
    assert "level_k:<level>" in players_for("beauty_contest")
    assert "level_k:<level>" not in players_for("pirate_game")
    assert set(PLAYERS) >= {"fixed", "level_k"}
    with pytest.raises(UnknownName):
        players_for("poker")


def test_settings_are_for_models_only():
    with pytest.raises(BadParameter, match="takes no settings"):
        make_player("rational", reasoning=True)
    with pytest.raises(BadParameter, match="takes no settings"):
        make_player("fixed:3", client={"base_url": "http://localhost"})


def test_players_that_ask_a_model():
    player = make_player(
        "openai:some-model", "divide_dollar", {"base_url": "http://127.0.0.1:9/v1"}, reasoning=True
    )
    assert player.start(rulebook("divide_dollar"), 0, 1).decisions == 0
    with pytest.raises(UnknownName, match="did you mean 'base_url'"):
        make_player("openai:some-model", client={"base_ulr": "x"})
    with pytest.raises(UnknownName, match="did you mean 'reasoning'"):
        make_player("openai:some-model", reasonning=True)
    with pytest.raises(BadParameter, match="transformers:<path>"):
        make_player("transformers")
    with pytest.raises(LLMGamesError, match="nowhere"):
        make_player("transformers:/nowhere")


def test_a_model_of_another_game_is_not_seated():
    theirs, ours = SingleAgentEnv("public_goods"), SingleAgentEnv("divide_dollar")
    model = SimpleNamespace(
        action_space=theirs.action_space,
        observation_space=theirs.observation_space,
        predict=lambda observation, deterministic: (0, None),
    )
    learned = LearnedPolicy(model)
    learned.start(theirs.game, 0, 1)
    with pytest.raises(BadParameter, match="seat it in its own game"):
        learned.start(ours.game, 0, 1)
