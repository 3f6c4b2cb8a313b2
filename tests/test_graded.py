"""Graded questions: no move hangs on them, their answers are exact, constant answers do not do."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from playing import NAMES, each_row

from llm_games.asides import GRADED, Chances
from llm_games.baselines import graded_questions as graded
from llm_games.baselines.drawn_games import drawn_parameters, known_values
from llm_games.baselines.graded_questions import KINDS, GradedQuestion, kinds_of
from llm_games.benchmarks.judge.graded_answers import graded_rows
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.api import run
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.tables import run_tables
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.registry import game_class, rulebook
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.wrappers.clients.mock import MockClient
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play
from llm_games.wrappers.policy import RandomPolicy

ALL = [GradedQuestion(kind) for kind in KINDS]
STEPS = 4  # of a game that are played


class Watched(MockClient):
    """Chance as a model, and all that it was asked."""

    def __init__(self):
        super().__init__()
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        return await super().complete(request)


def drawn_game(name, number):
    return rulebook(name, **drawn_parameters(name, Noise(number).of(name)))


def played(game, ask, **settings):
    client = Watched()
    model = LLMPolicy(client, ask=ask, temperature=1, **settings)
    others = [RandomPolicy()] * (game.players - 1)
    episode = play(game, [model, *others], 3, max_steps=STEPS)
    asked = [r for r in client.requests if not r.kind.endswith(GRADED)]
    seen = [(r.kind, r.messages, r.seed, r.who, r.stays, r.tools) for r in asked]
    decisions = [step.decisions[0] for step in episode.steps if 0 in step.decisions]
    return seen, decisions, client.requests, episode


def unasked(decisions):
    """Return decisions without what graded questions added."""
    attempts = [[a for a in d.attempts if not a.kind.endswith(GRADED)] for d in decisions]
    texts = [[(a.kind, a.text, a.seed, a.outcome) for a in row] for row in attempts]
    notes = [[n for n in d.notes if not n.kind.endswith(GRADED)] for d in decisions]
    return [(d.action, d.outcome) for d in decisions], texts, notes


def alike(game, **settings):
    """Check that moves are as without questions; return the kinds that were asked."""
    plain, asked = played(game, (), **settings), played(game, ALL, **settings)
    assert plain[0] == asked[0]
    assert unasked(plain[1]) == unasked(asked[1])
    assert plain[3].records == asked[3].records
    return Counter(request.kind for request in asked[2] if request.kind.endswith(GRADED))


@each_row("name", NAMES)
def test_moves_are_bit_equal_with_and_without_them(name):
    kinds = alike(drawn_game(name, 1))
    assert len(kinds) >= 2
    assert {f"{kind}{GRADED}" for kind in kinds_of(drawn_game(name, 1))} >= {*kinds}


WAYS = [
    {"overflow": "summarise", "memory_tokens": 900},
    {"notices": False, "memory": 1},
    {"reasoning": True, "remember": "replies"},
]


@each_row("settings", WAYS)
def test_the_same_with_other_memories(settings):
    assert alike(rulebook("public_goods", players=3, rounds=6), **settings)
    assert alike(rulebook("public_goods", players=3, rounds=2, talk={"turns": 1}), **settings)


@each_row("name", NAMES)
def test_no_constant_answer_does_in_all_kinds(name):
    """Of some drawn games, at states that random players reach."""
    assert any(constant_share(name, kind) <= 0.5 for kind in ("payoff", "reply"))


def constant_share(name, kind, count=24):
    """Return how many of some questions one answer is right to; 1 of too few questions."""
    right, asked = Counter(), 0
    for number in range(30):
        game = drawn_game(name, number).core
        state = game.reset(number)
        for step in range(5):
            if state.over or asked == count:
                break
            seats = np.flatnonzero(game.asked(state)).tolist()
            seat = seats[(number + step) % len(seats)]
            aside = GradedQuestion(kind)(View.of(game, state, seat), Noise(number).of(step))
            if aside is not None:
                asked += 1
                right.update(right_answers(kind, game, state, aside, seat))
            moves = graded.drawn_moves(game, state, Noise(number).of("play", step))
            state, _ = game.step(state, game.assemble(state, moves))
    return max(right.values()) / asked if asked == count else 1


def right_answers(kind, game, state, aside, seat):
    if kind == "payoff":
        return {round(graded.value_after(game, state, aside.supposed, seat), 2)}
    row = aside.supposed[0] if aside.supposed else ()
    losses = graded.losses_to(game, state, row, seat, aside.question.sample(Noise(1)))
    assert losses.lost.max() > losses.lost.min() + graded.CLOSE  # else it asks nothing
    return {m for m, lost in zip(*losses[:2], strict=True) if lost <= losses.lost.min() + 1e-9}


@each_row("name", NAMES)
def test_drawn_numbers_are_no_papers(name):
    draws = [drawn_parameters(name, Noise(number).of(name)) for number in range(4)]
    presets = [{**preset} for preset in game_class(name).presets.values()]
    for parameters in draws:
        numbers = {k: v for k, v in parameters.items() if k not in ("players", "rounds")}
        assert numbers
        for key, value in numbers.items():
            assert str(value) not in map(str, known_values(name, key))
        assert parameters not in presets
    assert any(a != b for a, b in pairwise(draws))


# -- a run ----------------------------------------------------------------------------------------


def answer(request):
    """A player that gives 0 of 20, expects 5 of others who give it, and knows half of the rest."""
    kind = request.kind.removesuffix(GRADED)
    answers = {
        "belief": {"mean": 5},
        "payoff": {"outcome": 1},
        "equilibrium": {"equilibrium": "no"},
    }
    return json.dumps(answers.get(kind, {"tokens_contributed": 0}))


def test_answers_are_scored_by_the_record(tmp_path):
    ask = {"client": ScriptedClient(answer), "ask": list(KINDS)}
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 4, "ratio": 2}}
    config = {"seats": [ask, "fixed:5", "fixed:5"], "order": "fixed", "games": [game], "seed": 5}
    result = run(config, tmp_path / "a.db").games["public_goods"]
    rows = {row.measure: row for row in result.graded}
    asked = ["payoff", "reply", "reply, right", "equilibrium", "belief", "belief, consistency"]
    assert [*rows] == asked
    assert {row.n for row in rows.values()} == {4}
    assert (rows["belief"].score.mean, rows["belief"].constant) == (0, 0)
    assert rows["belief"].uniform == rows["belief"].score.mean - (5 / 20) ** 2
    assert rows["belief"].last == -((5 / 20) ** 2) / 4  # wrong in the first round alone
    assert rows["reply"].score.mean == rows["belief, consistency"].score.mean == 1
    assert rows["reply, right"].constant == 1  # nothing is always best
    with Records.open_readonly(tmp_path / "a.db") as records:
        assert replay(records, objects_of(records, ask)).differences == ()
        notes = records.notes(1)
    supposed = {n.kind: n.content["supposed"] for n in notes}
    assert supposed[f"belief{GRADED}"] == []
    settled = [{*n.content["supposed"][0]} == {0} for n in notes if n.kind.startswith("equi")]
    assert rows["equilibrium"].score.mean == settled.count(False) / 4
    own, *others = next(n for n in notes if n.kind.startswith("payoff")).content["supposed"][0]
    paid = 20 - own + 2 * (own + sum(others)) / 3
    truth = graded.value_after(result_rules(), result_rules().reset(0), [[own, *others]], 0)
    assert truth == pytest.approx(paid)
    plain = result.plain()["graded"]
    assert [row["measure"] for row in plain] == [*rows]
    assert json.loads(json.dumps(plain)) == plain


def result_rules():
    return rulebook("public_goods", players=3, rounds=4, ratio=2)


def objects_of(records, seat):
    """Hand the client over again; what is recorded answers."""
    names = {s["player"] for g in records.config["games"] for s in g["seats"]}
    return {name.rpartition("own:")[2]: seat["client"] for name in names if "own:" in name}


def test_an_answer_that_cannot_be_read_is_counted_and_not_asked_again(tmp_path):
    ask = {"client": ScriptedClient(lambda request: "?" if "?" in request.kind else '"go"')}
    game = {"game": "el_farol_bar", "params": {"players": 2, "rounds": 2}}
    ask |= {"ask": ["belief"], "max_attempts": 1}
    done = run({"seats": [ask, "random"], "games": [game]}, tmp_path / "a.db")
    assert [row["outcome"] for row in done.rows("attempts") if row["kind"] == "belief?"] == [
        "unparsable",
        "unparsable",
    ]
    result = done.games["el_farol_bar"]
    [row] = result.graded
    assert (row.measure, row.n, row.unread, row.score) == ("belief", 0, 2, None)
    assert result.plain()["graded"][0]["score"] is None
    [shown] = [grid.rows for grid in run_tables([result], None) if "constant" in grid.columns]
    assert shown == [["4 belief", row.player, 0, None, None, None, None]]
    outcomes = {row["outcome"] for row in done.rows("decisions")}
    assert outcomes <= {"valid", "unparsable"}


def test_a_kind_that_there_is_not(tmp_path):
    config = {"seats": "mock", "player": {"ask": ["beleif"]}, "games": [{"game": "divide_dollar"}]}
    with pytest.raises(ConfigError, match="did you mean 'belief'"):
        run(config, tmp_path / "a.db")


def test_a_graded_run_replays_and_is_shown_everywhere(tmp_path, llm_games):
    path = tmp_path / "a.db"
    done = run("graded/battle_royale", path, seats="mock", episodes=2)
    result = done.games["battle_royale"]
    with Records.open_readonly(path) as records:
        assert replay(records).differences == ()
        [game] = games(records)
        rows = {row.measure: row for row in graded_rows(game)}
        ends = [episode.rewards.sum(axis=0) > 0 for episode in game.done]
    assert {"reply", "belief, Brier", "belief, log", "survival, Brier"} <= rows.keys()
    assert rows["survival, Brier"].last < rows["survival, Brier"].uniform == -0.25
    assert all(end.any() for end in ends)
    assert rows["reply, right"].constant < 1
    shown = {head for grid in run_tables([result], None) for head in grid.columns}
    assert {"constant", "last", "uniform"} <= shown  # in the terminal, and so in the viewer
    llm_games("report", path, "--out", tmp_path / "r", "--no-baselines")
    assert "<h2>Graded questions</h2>" in (tmp_path / "r" / "report.html").read_text("utf-8")
    table = (tmp_path / "r" / "tables" / "graded.csv").read_text("utf-8")
    assert table.count("survival, Brier") == 1


@pytest.mark.long
def test_the_graded_run_of_all_games(tmp_path):
    """As shipped, played by chance: 0 differences, and constant answers do not do."""
    path, exact = tmp_path / "a.db", {"payoff", "reply, right", "equilibrium"}
    results = run("graded", path, seats="mock").games
    assert {*results} == {*NAMES}
    for result in results.values():
        constants = [row.constant for row in result.graded if row.measure in exact]
        assert min(constants) <= 0.5, result.label
    with Records.open_readonly(path) as records:
        assert replay(records).differences == ()


def test_chances():
    question = Chances("chances", ("go", "stay"))
    drawn = question.sample(Noise(1))
    assert read_reply(question.reply(drawn), question).action == pytest.approx(drawn)
    for reply, outcome in (
        ('{"chances": {"go": 70, "stay": 30}}', "valid"),
        ('{"chances": {"go": 33.3, "stay": 66.6}}', "valid"),
        ('{"chances": {"go": 70, "stay": 40}}', "out_of_range"),
        ('{"chances": {"go": 170, "stay": -70}}', "out_of_range"),
        ('{"chances": {"go": 70}}', "unparsable"),
        ('{"chances": {"go": 70, "stay": 30, "leave": 0}}', "unparsable"),
        ('{"chances": 70}', "unparsable"),
    ):
        assert read_reply(reply, question).outcome == outcome
    each = Chances("chances", ("a", "b"), together=False)
    assert read_reply('{"chances": {"a": 90, "b": 80}}', each).action == {"a": 0.9, "b": 0.8}
    assert MISSING not in each.sample(Noise(1)).values()
