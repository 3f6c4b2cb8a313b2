"""Isomorphic instances: other words and units around the same rules, moves and records."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

import llm_games as lg
from llm_games import game_rooms as rooms
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.named_tools import TOOLS
from llm_games.baselines.players import handed
from llm_games.disguise import MARK, Disguise, unmarked
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.registry import disguised, game_class, rulebook
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.words import Prompts, versions
from llm_games.wrappers.tools import BadCall

GAMES = [name for name in rooms.ROOMS if game_class(name).surface]


def _scaled(name, given, units):
    """Return the parameters of the game in which everything is so many times as large."""
    counts = game_class(name).surface.counts.items()
    kinds = {told: kind for kind, names in counts for told in names.split()}
    kinds["payoffs"] = "points"  # as they are told, one by one
    return {k: _times(v, units.get(kinds.get(k), 1)) for k, v in given.items()}


def _times(value, unit):
    if isinstance(value, tuple) and unit > 1:
        return tuple(_times(entry, unit) for entry in value)
    return value * unit


DRAWN = {
    "el_farol_bar": lambda n, of: {
        "min": (low := n(of, 5)), "home": low + n(of, 5), "max": low + 5 + n(of, 9),
        "mode": ["implicit", "explicit"][n(of, 2)], "ratio": Fraction(1 + n(of, 4), 5),
        "implicit_report": ["stayers_blind", "no_count"][n(of, 2)],
    },
    "public_goods": lambda n, of: {
        "tokens": 8 + n(of, 90), "ratio": Fraction(3 + n(of, 9), 4),
        "endowment": ["reset", "carry"][n(of, 2)],
    },
    "divide_dollar": lambda n, of: {"golds": 1 + n(of, 500)},
    "diners_dilemma": lambda n, of: {
        "cheap_price": (price := 1 + n(of, 20)), "costly_price": price + 5 + n(of, 9),
        "cheap_utility": (worth := n(of, 30)), "costly_utility": worth + 4,
    },
    "beauty_contest": lambda n, of: {
        "min": (low := n(of, 3)), "max": low + 20 + n(of, 200), "prize": 1 + n(of, 9),
        "foul_fee": n(of, 3), "ratio": Fraction(1 + n(of, 5), 4),
        "domain": ["integer", "real"][n(of, 2)], "decimals": 2,
        "reveal": ("mean", "target", "winning_numbers", "own_result", "all_choices"),
    },
    "matrix_game": lambda n, of: {
        "payoffs": tuple(tuple(n(of, 20) - 5 for _ in range(2)) for _ in range(2)), "players": 2,
        "labels": ["letters", "drawn"][n(of, 2)], "history": n(of, 3),
        "reveal": ["actions", "payoff"][n(of, 2)], "noise": Fraction(n(of, 2), 8),
    },
}  # fmt: skip
"""Parameters by a source of numbers."""


def _draws(noise):
    count = iter(range(10**6))
    return lambda of, high: int(of.of(next(count)).integers(high)), noise


@pytest.fixture(scope="module", params=GAMES)
def name(request):
    return request.param


def test_five_games_have_other_words():
    assert {"el_farol_bar", "public_goods", "divide_dollar", "diners_dilemma"} < {*GAMES}
    assert "beauty_contest" in GAMES


def _squares(name, cases, start=0):
    """Yield what is told in a disguised game, and in the scaled game in the same words."""
    for case in range(start, start + cases):
        noise = Noise(case).of("square")
        number, of = _draws(noise)
        given = {"players": 2 + number(of, 11), "rounds": 4} | DRAWN[name](number, of)
        game = disguised(rulebook(name, **given), case % 64)
        units, action = game.disguise.units, game.surface.action
        larger = disguised(rulebook(name, **_scaled(name, given, units)), case % 64)
        larger.disguise.__dict__["units"] = dict.fromkeys(units, 1)  # its words alone
        factor = units.get(action, 1)
        prompts = Prompts(name, f"v{1 + case % 5}")
        states = [game.reset(case), larger.reset(case)]
        for step in range(3):
            for seat in range(game.players):
                if not step:
                    yield "rules", *[prompts.rules(g, seat) for g in (game, larger)]
                views = [View.of(g, s, seat) for g, s in zip((game, larger), states, strict=True)]
                yield "report", *[prompts.report(view) for view in views]
                forms = [view.question.plain_form for view in views]
                asked = zip(map(prompts.request, views), forms, strict=True)
                yield "request", *[text.replace(form, "") for text, form in asked]
            moves = np.array([
                view.question.sample(noise.of(step, seat)) for seat in range(game.players)
                for view in [View.of(game, states[0], seat)]
            ])  # fmt: skip
            if name == "beauty_contest" and number(of, 4) == 0:
                moves[0] = MISSING
            scaled = np.where(moves == MISSING, MISSING, moves * factor)
            pairs = zip((game, larger), states, (moves, scaled), strict=True)
            states = [g.step(s, a)[0] for g, s, a in pairs]


def _check_squares(name, cases, start=0):
    """Return how many reports came out alike."""
    count = 0
    for kind, mine, plain in _squares(name, cases, start):
        assert mine == plain
        assert not MARK.search(mine)
        count += kind == "report" and bool(mine)
    return count


@pytest.mark.filterwarnings("ignore:no dilemma")
def test_the_disguised_report_is_the_report_of_the_scaled_game(name):
    assert _check_squares(name, 10) >= 20


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:no dilemma")
def test_ten_thousand_reports(name):
    start, count = 100, 0
    while count < 10_000:
        count += _check_squares(name, 50, start)
        start += 50


@pytest.mark.parametrize("seed", range(3))
def test_every_legal_action_comes_back(name, seed):
    game = disguised(rulebook(name), seed)
    question = View.of(game, game.reset(1), 0).question
    low, high = game.bounds()
    for action in range(low, high + 1):
        assert question.allows(question.reply(action))
        reply = read_reply(question.reply(action), question)
        assert (reply.outcome, reply.action) == ("valid", action)
        assert question.named(f"I will choose {question.spoken(action)}.") == action
    plain = View.of(rulebook(name), game.reset(1), 0).question
    draws = [[q.sample(Noise(i)) for i in range(50)] for q in (question, plain)]
    assert draws[0] == draws[1]


def test_reals_come_back():
    game = disguised(rulebook("beauty_contest", domain="real"), 5)
    question = View.of(game, game.reset(1), 0).question
    assert question.scale > 1
    for action in (0, 1, 333_333, 66_666_667, 100_000_000):
        assert read_reply(question.reply(action), question).action == action
    assert (
        read_reply(f'{{"{question.key}": {101 * question.scale}}}', question).outcome
        == "out_of_range"
    )


def test_a_number_between_is_no_answer_and_one_beyond_is_out_of_range():
    game = disguised(rulebook("public_goods"), 1)
    question = View.of(game, game.reset(1), 0).question
    scale, key = question.scale, question.key
    assert scale > 1
    assert key != "tokens_contributed"
    between = read_reply(f'{{"{key}": {scale + 1}}}', question)
    assert between.outcome == "unparsable"
    assert f"multiple of {scale}" in between.why
    beyond = read_reply(f'{{"{key}": {21 * scale}}}', question)
    assert (beyond.outcome, beyond.action) == ("out_of_range", 21)
    assert f"from 0 to {20 * scale}" in beyond.why


def _stands_alone(kind):
    try:
        return bool(lg.player(kind))
    except BadParameter:  # it needs a value
        return False


def test_rule_players_and_numbers_are_the_same_to_the_bit(name):
    plain, other = rulebook(name), disguised(rulebook(name), 7)
    kinds = ["random", *filter(_stands_alone, handed(name).rules)]
    kinds += ["level_k:2"] * ("level_k" in handed(name).rules)
    for kind in kinds:
        runs = [play_rules(game, [kind] * game.players, range(5)) for game in (plain, other)]
        assert runs[0].payoffs.tobytes() == runs[1].payoffs.tobytes()
    state = plain.reset(3, (5,))
    assert plain.observe(state).tobytes() == other.observe(other.reset(3, (5,))).tobytes()
    seats = [lg.player("random")] * plain.players
    played = [lg.play(game, seats, seed=4) for game in (plain, other)]
    assert played[0].payoffs.tolist() == played[1].payoffs.tolist()


SETTINGS = {
    "public_goods": [{"endowment": "carry", "initial_tokens": "random"}, {"rounds": 1}],
    "beauty_contest": [
        {"max_draw": (10, 30)},
        {"personas": "mixed", "remarks": "econ_arena", "told_rational": True},
        {"prize_rule": "amplified", "foul_fee": 1, "reveal_last": 2},
    ],
    "matrix_game": [
        {"by_count": ((7, 7), (0, 8))},
        {"ordinal": 3, "continuation": "2/3", "called": "Our Game", "order": "drawn"},
    ],
}


@pytest.mark.parametrize(("name", "settings"), [
    *((name, {"preset": preset}) for name in GAMES for preset in game_class(name).presets),
    *((name, settings) for name, several in SETTINGS.items() for settings in several),
])  # fmt: skip
def test_all_that_is_told_says_what_it_counts(name, settings):
    game = disguised(rulebook(name, **settings), 4)
    state = game.reset(1)
    for _ in range(3):
        moves = {s: View.of(game, state, s).question for s in np.flatnonzero(game.asked(state))}
        moves = {seat: question.sample(Noise(seat)) for seat, question in moves.items()}
        state, _ = game.step(state, game.assemble(state, moves))
        for version in versions(name):
            prompts, view = Prompts(name, version), View.of(game, state, 1)
            text = "".join([prompts.rules(game, 1), prompts.report(view), prompts.request(view)])
            assert not MARK.search(text)
            assert "player_" not in text


def test_numbers_that_wordings_name_are_counted_too():
    rules = rulebook("beauty_contest", bounds_check="0_100", max=200)
    for seed, version in enumerate(versions("beauty_contest")):
        game = disguised(rules, seed)
        top = 100 * game.disguise.units["numbers"]
        text = Prompts("beauty_contest", version).rules(game, 0)
        assert f"0 to {top}" in text or f"0 and {top}" in text


def test_our_tools_speak_as_the_question_does():
    game = disguised(rulebook("public_goods", ratio=20), 1)
    view = View.of(game, game.reset(1), 0)
    text = TOOLS["best_response"].run(view, {})
    assert text.endswith(f"{view.question.key} {20 * view.question.scale}")
    others = {"others": [0, *[20 * view.question.scale] * 8]}
    assert TOOLS["best_response"].run(view, others).endswith(f" {20 * view.question.scale}")
    with pytest.raises(BadCall, match=f"multiple of {view.question.scale}"):
        TOOLS["best_response"].run(view, {"others": [1] * 9})


def test_seats_have_other_names_and_stay():
    game = disguised(rulebook("divide_dollar", players=4, talk={"turns": 1}), 2)
    assert game.names() == [f"player_{i}" for i in range(4)]
    assert {*game.names_in_words()}.isdisjoint(game.names())
    assert len({*game.names_in_words()}) == 4
    assert game.names_in_words()[1] in Prompts("divide_dollar").rules(game, 1)
    assert "player_" not in Prompts("divide_dollar").rules(game, 1)


def test_seeds_are_instances():
    games = [disguised(rulebook("public_goods"), seed) for seed in range(16)]
    texts = {Prompts("public_goods").rules(game, 0) for game in games}
    assert len(texts) > 12
    again = pickle.loads(pickle.dumps(games[3]))
    assert again.disguise == games[3].disguise
    assert again.disguise.units == games[3].disguise.units
    assert rulebook("public_goods").disguise is None


@pytest.mark.parametrize("name", list(rooms.ROOMS))
def test_wordings_mark_only_what_has_other_words(name):
    """And what is marked is the plain wording without its marks."""
    surface = game_class(name).surface
    for version in versions(name):
        path = rooms.wordings(name) / f"{version}.j2"
        source = path.read_text("utf-8")
        if surface is None:
            assert unmarked(source) == source
        else:
            assert not MARK.search(Disguise(name, 1, surface).fill(source, path.name))


# -- what cannot be renamed ------------------------------------------------------------------------
def test_a_game_without_marks():
    with pytest.raises(BadParameter, match=r"pirate_game cannot be renamed.*el_farol_bar"):
        disguised(rulebook("pirate_game"), 1)


def test_a_wording_that_says_a_word_itself(tmp_path):
    (tmp_path / "el_farol_bar").mkdir()
    file = tmp_path / "el_farol_bar" / "mine.j2"
    file.write_text(
        (rooms.wordings("el_farol_bar") / "v1.j2").read_text().replace("<<bar>>", "bar")
    )
    prompts = Prompts("el_farol_bar", "mine", tmp_path)
    assert "to a bar" in prompts.rules(rulebook("el_farol_bar"), 0)
    with pytest.raises(BadParameter, match=r"mine\.j2 cannot be renamed: it says 'bar'.*<<bar>>"):
        prompts.rules(disguised(rulebook("el_farol_bar"), 1), 0)
    file.write_text(file.read_text().replace("to a bar", "to a <<tavern>>"))
    file.write_text(file.read_text().replace(" bar", " <<bar>>"))
    game = disguised(rulebook("el_farol_bar"), 2)
    with pytest.raises(BadParameter, match=r"marks <<tavern>>, for which el_farol_bar"):
        prompts.rules(game, 0)


def test_a_told_value_of_which_nobody_says_what_it_counts():
    with pytest.raises(BadParameter, match="tells 'height'"):
        disguised(rulebook("el_farol_bar"), 1).disguise.scale({"height": 3}, {})
