"""The planning bidder: plans, beliefs that are checked, lessons; and planning in any other game."""

import asyncio
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row, sampled

from llm_games.asides import Lessons, Text
from llm_games.baselines.games.english_auction.graded_notes import BeliefAside, Priorities
from llm_games.baselines.players import llm_player, make_player, mind_of
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.store import Records, Store
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.run.resume import planned, recalled
from llm_games.errors import BadParameter, UnknownName
from llm_games.questions import MISSING, Bid
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.mind import Planning
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.play import play
from llm_games.wrappers.policy import Note
from llm_games.wrappers.single_agent import SingleAgentEnv

NAMES = ("player_0", "player_1", "player_2")
TRUTH = {
    "remaining_budget": 8300,
    "total_profits": {"player_0": 300, "player_1": 0, "player_2": 700},
    "winning_bids": {
        "player_0": {"Widget A": 1700},
        "player_1": {},
        "player_2": {"Gadget B": 1300},
    },
}
FIRST = {
    "remaining_budget": 8700,
    "total_profits": {"player_0": 300, "player_1": 0, "player_2": 600},
    "winning_bids": {"player_0": {"Widget A": 1750}, "player_2": {"Gadget B": 1300}},
}
SECOND = FIRST | {
    "remaining_budget": 8300,
    "total_profits": {"player_0": 300, "player_1": 0, "player_2": 700},
}


def beliefs(**changes):
    given = {"me": "player_0", "truth": TRUTH, "items": ("Widget A", "Gadget B")} | changes
    return BeliefAside("remaining_budget", **given)


def counts(question, belief):
    checks = question.checks(question.read(belief))
    return {
        group: (
            sum(c.group == group for c in checks),
            sum(c.group == group and not c.right for c in checks),
        )
        for group in ("self", "others")
    }


def legal(request):
    """Give a right answer to whatever is asked; bids are the lowest until 1300."""
    question = request.question
    if question is None:
        return "hello"
    if isinstance(question, Bid):
        return question.reply(question.floor if question.floor < 1300 else -1)
    if isinstance(question, Priorities):
        return question.reply(dict.fromkeys(question.items, 3))
    if isinstance(question, BeliefAside):
        return question.reply({"summary": "So it is."} | dict(question.truth))
    if isinstance(question, Lessons):
        return '{"lessons": ["Bid less.", "Wait."]}'
    if isinstance(question, Text):
        return json.dumps({question.key: "I do as they do."})
    return question.reply(sampled(question, np.random.default_rng(request.seed)))


class Spy(ScriptedClient):
    def __init__(self, script=lambda request: None):
        super().__init__(lambda request: self._reply(request, script(request)))
        self.seen = []

    def _reply(self, request, special):
        self.seen.append(request)
        return legal(request) if special is None else special

    def said(self, kind):
        return [request.messages[-1]["content"] for request in self.seen if request.kind == kind]


def auction(client, seats=2, seed=3, games=None, **planning):
    policy = PlanningPolicy(client, Planning(**planning), mind_of)
    rivals = [make_player("rule:2")] * (3 - seats)
    options = {"players": 3, "items": "items_3"} | (games or {})
    return play("english_auction", [policy] * seats + rivals, seed=seed, **options)


def notes(episode, kind, seat=0):
    decisions = [step.decisions.get(seat) for step in episode.steps]
    decisions.append(episode.afterwards.get(seat))
    found = [note for decision in decisions if decision for note in decision.notes]
    return [note.content for note in found if note.kind == kind]


# -- what is read ---------------------------------------------------------------------------------


def test_worked_example_of_a_belief_update():
    question = beliefs()
    assert counts(question, FIRST) == {"self": (3, 1), "others": (3, 1)}
    assert counts(question, SECOND) == {"self": (3, 0), "others": (3, 0)}
    first = read_reply(json.dumps(FIRST), question)
    assert first.outcome == "out_of_range"
    assert "8300" in first.why
    assert '"total_profits" of player_2 is 700' in first.why
    assert read_reply(json.dumps(SECOND), question).outcome == "valid"
    assert read_reply(json.dumps(FIRST), beliefs(correct=False)).outcome == "valid"


@each_row(
    ("text", "outcome", "why"),
    [
        ("", "unparsable", "empty"),
        ("I have 8300 left.", "unparsable", "no complete JSON object"),
        (json.dumps({k: v for k, v in FIRST.items() if k != "winning_bids"}), "unparsable",
         "winning_bids"),
        (json.dumps(SECOND | {"remaining_budget": "8300"}), "unparsable", "not a number"),
        (json.dumps(SECOND | {"remaining_budget": True}), "unparsable", "not a number"),
        (json.dumps(SECOND | {"total_profits": []}), "unparsable", "objects"),
        (json.dumps(SECOND | {"winning_bids": {"player_0": 3}}), "unparsable", "object for each"),
        (json.dumps(SECOND | {"total_profits": {"player_0": None}}), "unparsable", "not a number"),
        (json.dumps(SECOND) + json.dumps(FIRST), "unparsable", "different answers"),
        (json.dumps(SECOND | {"remaining_budget": 8300.5}), "out_of_range", "8300"),
        # bidders who are left out, unknown bidders and wrong prices are no errors
        (json.dumps(SECOND | {"total_profits": {}, "winning_bids": {}}), "valid", ""),
        (json.dumps(SECOND | {"total_profits": {"player_9": 5}}), "valid", ""),
        ("So:\n```json\n" + json.dumps(SECOND) + "\n```", "valid", ""),
        (json.dumps({"explanation": "x", **SECOND}), "valid", ""),
    ],
)  # fmt: skip
def test_beliefs_are_read(text, outcome, why):
    reply = read_reply(text, beliefs())
    assert (reply.outcome, why in reply.why) == (outcome, True)


def test_an_unknown_profit_is_not_checked():
    truth = TRUTH | {"total_profits": dict.fromkeys(NAMES)}
    assert counts(beliefs(truth=truth), FIRST) == {"self": (2, 1), "others": (1, 0)}


def test_names_as_the_authors_match_them():
    truth = {
        "remaining_budget": 5,
        "total_profits": {"player_1": 0, "player_10": 7},
        "winning_bids": {"player_1": {}, "player_10": {}},
    }
    belief = {"remaining_budget": 5, "total_profits": {"player_10": 7}, "winning_bids": {}}
    exact = beliefs(truth=truth, me="player_1")
    assert counts(exact, belief) == {"self": (1, 0), "others": (1, 0)}
    loose = beliefs(truth=truth, me="player_1", substring=True)
    assert counts(loose, belief) == {"self": (2, 1), "others": (1, 0)}


ITEMS = Priorities("priorities", ("Widget A", "Gadget B"))


@each_row(
    ("text", "outcome", "kept"),
    [
        ('{"priorities": {"Widget A": 2, "Gadget B": 3}}', "valid", {"Widget A": 2, "Gadget B": 3}),
        ('{"Widget A": 2, "Gadget B": "3"}', "valid", {"Widget A": 2, "Gadget B": 3}),
        ('{"explanation": "why", "Widget A": 1, "Gadget B": 1}', "valid",
         {"Widget A": 1, "Gadget B": 1}),
        ('{"priorities": {"Widget A": 2}}', "unparsable", {"Widget A": 2}),
        ('{"priorities": {"Widget A": 4, "Gadget B": 1}}', "out_of_range", {"Gadget B": 1}),
        ('{"priorities": {"Widget A": 2.5, "Gadget B": 1}}', "out_of_range", {"Gadget B": 1}),
        ('{"priorities": {"Widget A": 2, "Gadget B": 1, "Yacht": 3}}', "out_of_range",
         {"Widget A": 2, "Gadget B": 1}),
        ('{"reasoning": "why", "Widget A": 1, "Gadget B": 1}', "valid",
         {"Widget A": 1, "Gadget B": 1}),
        ('{"priorities": [2, 1]}', "unparsable", MISSING),
        ('{"priorities": {"Yacht": 3}}', "out_of_range", MISSING),
        ("", "unparsable", MISSING),
        ("A first, then B.", "unparsable", MISSING),
    ],
)  # fmt: skip
def test_priorities_are_read(text, outcome, kept):
    reply = read_reply(text, ITEMS)
    assert reply.outcome == outcome
    assert reply.action == kept


@each_row(
    ("text", "outcome"),
    [
        ('{"lessons": ["a", "b"]}', "valid"),
        ('{"lessons": "one"}', "valid"),
        ('{"lessons": []}', "out_of_range"),
        ('{"lessons": [""]}', "unparsable"),
        ('{"lessons": [1]}', "unparsable"),
        ("{}", "unparsable"),
    ],
)
def test_lessons_are_read(text, outcome):
    assert read_reply(text, Lessons("lessons")).outcome == outcome


@each_row("question", [ITEMS, beliefs(), Lessons("lessons"), Text("plan", "a plan")])
@each_row("reasoning", [False, True])
def test_forms_allow_what_their_schema_does(question, reasoning):
    schema = question.schema(reasoning)
    assert set(schema["required"]) == set(schema["properties"])
    sample = {
        "Priorities": {"Widget A": 2, "Gadget B": 3},
        "BeliefAside": {"summary": "Ok."} | TRUTH,
        "Lessons": ["Wait."],
        "Text": "I wait.",
    }[type(question).__name__]
    text = question.reply(sample)
    assert all(question.allows(text[:end]) for end in range(len(text) + 1))
    assert not question.allows(text + "x")
    assert read_reply(text, question).outcome == "valid"


# -- an auction ------------------------------------------------------------------------------------


def test_order_of_the_questions():
    """Plan, bids; after each item a belief, and but for the last one a new plan; then lessons."""
    client = Spy()
    episode = auction(client, seats=1, learning=True)
    kinds = [request.kind for request in client.seen]
    short = [kind for i, kind in enumerate(kinds) if kinds[i - 1 : i] != [kind]]
    item = ["move", "belief"]
    assert short == ["plan", *item, "replan", *item, "replan", *item, "learn"]
    assert [note["item"] for note in notes(episode, "belief")] == [0, 1, 2]
    assert [(n["item"], n["again"]) for n in notes(episode, "plan")] == [
        (0, False), (1, True), (2, True),
    ]  # fmt: skip
    assert notes(episode, "lessons") == [{"lessons": ["Bid less.", "Wait."]}]


@each_row(("strategy", "plans"), [("none", 0), ("static", 1), ("adaptive", 3)])
def test_strategies(strategy, plans):
    client = Spy()
    episode = auction(client, seats=1, strategy=strategy)
    assert len(notes(episode, "plan")) == plans
    assert len(notes(episode, "belief")) == 3
    first = client.said("move")[0]
    assert "Your estimate: 2200" in first
    assert ('"remaining_budget": 10000' in first) == (strategy != "adaptive")  # it is in its plan
    assert ("Gadget B 1000/2200" in first) == (strategy == "none")  # the others' is in their plan


def test_a_call_of_an_item_stays_in_the_dialogue():
    client = Spy()
    auction(client, seats=2, strategy="none", apart=True)
    rounds = [r.messages for r in client.seen if r.kind == "move" and len(r.messages) > 2]
    assert rounds
    for messages in rounds:
        assert "Your estimate: 2200" in messages[1]["content"]
        assert "is called" not in messages[-1]["content"]


def test_options_of_what_is_shown():
    blind, told = Spy(), Spy()
    auction(blind, seats=1, strategy="none", none_sees_estimates=False)
    assert not any("2200" in m["content"] for r in blind.seen for m in r.messages)
    auction(told, seats=1, replan_shows_old_plan=False)
    assert not any("Your plan so far" in text for text in told.said("replan"))
    shown = Spy()
    auction(shown, seats=1)
    plans = [re.search(r"Your plan so far: (.*)\.", text)[1] for text in shown.said("replan")]
    left = [list(r.question.items) for r in shown.seen if r.kind == "replan"]
    assert [list(json.loads(plan)) for plan in plans] == left  # items that are gone are left out
    assert [len(items) for items in left] == [2, 1]


def test_apart_a_bid_is_asked_for_after_the_plan_and_what_was_said_about_the_item():
    client = Spy()
    auction(client, seats=1, apart=True)
    for request in client.seen:
        said = [message["content"] for message in request.messages]
        if request.kind != "move":
            assert len(said) == 2
            continue
        assert said[2] == '{"priorities": ' + said[2].removeprefix('{"priorities": ')
        asked = [text for text in said[3:] if "is called" in text]
        assert len(asked) <= 1
        limits = [text for text in said if "a whole number from" in text]
        assert limits == []  # they would tell the true budget


def test_the_log_holds_every_reply_and_the_truth():
    client = Spy()
    episode = auction(client, seats=2, games={"players": 3, "reveal_value": "after_sale"})
    last = episode.steps[-1].outcome.record
    truth = notes(episode, "belief", seat=1)[-1]["truth"]
    assert truth["remaining_budget"] == last["budget"][1]
    assert list(truth["total_profits"].values()) == last["profit"].tolist()
    assert [len(won) for won in truth["winning_bids"].values()] == last["won"].tolist()
    engaged = dict.fromkeys(NAMES, 0)
    for update in client.said("belief")[:: len(client.said("belief")) // 3][:3]:
        for name in NAMES:
            engaged[name] += sum(part.split(" ")[-1].isdigit() for part in _parts(update, name))
    assert sum(engaged.values()) > 0


def _parts(update, name):
    happened = update.split("Now this happened: ")[1].split("Sold")[0]
    return [part for part in happened.replace(". ", ", ").split(", ") if name in part]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    players=st.integers(2, 4),
    options=st.sampled_from(
        [
            {},
            {"skip_broke": True, "budgets": 2300},
            {"bidding": "cyclic"},
            {"discount": 50, "budgets": 1500},
            {"reveal_value": "never"},
            {"values": "private", "value_mean": 1500, "value_sd": 300},
            {"terse_rules": True},
            {"objective": "items"},
        ]
    ),
)
def test_truth_is_what_the_rules_say(seed, players, options):
    """Whatever is played: the log that a bidder keeps of what it hears equals the state."""
    rng = np.random.default_rng(seed)

    def any_bid(request):
        question = request.question
        return question.reply(sampled(question, rng)) if isinstance(question, Bid) else None

    policy = PlanningPolicy(Spy(any_bid), Planning(strategy="static"), mind_of)
    game = rulebook("english_auction", players=players, items="items_4", **options)
    episode = play(game, [policy] * players, seed=seed)
    for seat in range(players):
        found = notes(episode, "belief", seat)
        assert [note["item"] for note in found] == [0, 1, 2, 3]
        truth = found[-1]["truth"]
        state = episode.state
        assert truth["remaining_budget"] == state.budget[seat]
        won = {name: len(items) for name, items in truth["winning_bids"].items()}
        assert list(won.values()) == state.won.tolist()
        spent = [sum(items.values()) for items in truth["winning_bids"].values()]
        assert spent == game.spent(state).tolist()
        if game.announces:
            assert list(truth["total_profits"].values()) == state.profit.tolist()
        else:
            known = [
                p for p, n in zip(truth["total_profits"].values(), won.values(), strict=True) if n
            ]
            assert known == [None] * len(known)


# -- wrong answers ---------------------------------------------------------------------------------


def holding(budget):
    def script(request):
        question = request.question
        if isinstance(question, BeliefAside):
            return question.reply({"summary": "", **question.truth, "remaining_budget": budget})
        return None

    return script


def test_four_wrong_beliefs_and_the_truth_is_stored():
    """Worked example: F = 4, C = 3."""
    client = Spy(holding(1))
    episode = auction(client, seats=1)
    for note in notes(episode, "belief"):
        assert [check["self"][1] for check in note["checks"]] == [1, 1, 1, 1]
        assert note["corrected"]
        assert note["belief"]["remaining_budget"] == 1
    assert "By your own count you have 1." not in client.said("move")[-1]
    assert "does not agree with the facts" in client.said("belief")[1]


def test_the_last_reply_is_stored_unchecked():
    client = Spy(holding(777))
    episode = auction(client, seats=1, belief_fallback="last_reply", belief_checks=2)
    assert [len(note["checks"]) for note in notes(episode, "belief")] == [2, 2, 2]
    assert len(client.said("belief")) == 9
    assert "By your own count you have 777." in client.said("move")[-1]


def test_without_correction_a_wrong_belief_stays():
    client = Spy(holding(777))
    episode = auction(client, seats=1, correct_belief=False)
    assert [note["checks"][0]["self"][1] for note in notes(episode, "belief")] == [1, 1, 1]
    assert len(client.said("belief")) == 3
    assert "By your own count you have 777." in client.said("move")[-1]


@each_row("text", ["", "nothing", '{"priorities": {"Yacht": 3}}'])
def test_an_unusable_plan(text):
    """Asked again twice; then missing items keep their value, 2 at first."""
    client = Spy(lambda r: text if r.kind in ("plan", "replan") else None)
    episode = auction(client, seats=1)
    plan = notes(episode, "plan")
    assert [len(note["unusable"]) for note in plan] == [3, 3, 3]
    assert set(plan[0]["priorities"].values()) == {2}
    half = Spy(lambda r: '{"priorities": {"Gadget B": 1}}' if r.kind == "plan" else None)
    assert list(notes(auction(half, seats=1), "plan")[0]["priorities"].values()) == [2, 1, 2]
    kept = Spy(lambda r: "?" if r.kind == "replan" else None)
    plan = notes(auction(kept, seats=1), "plan")
    assert [set(note["priorities"].values()) for note in plan] == [{3}, {3}, {3}]


@each_row(
    ("text", "outcome", "detail"),
    [
        ('{"bid": 99999}', "out_of_range", "over_budget"),
        ('{"bid": 999}', "out_of_range", "below_start"),
        ("I bid twelve hundred.", "unparsable", ""),
        ('{"bid": "twelve hundred"}', "unparsable", ""),
        ('{"bid": 1100} or {"bid": 1200}', "unparsable", ""),
        ('{"bid": 1000.5}', "unparsable", ""),
        ('{"Gadget B": 1200}', "unparsable", ""),
        ('{"item": "Gadget B", "bid": 1200}', "unparsable", ""),
        ("", "unparsable", ""),
    ],
)
def test_bad_bids_end_in_withdrawal(text, outcome, detail):
    episode = auction(Spy(lambda r: text if r.kind == "move" else None), seats=1)
    attempts = [a for a in episode.steps[0].decisions[0].attempts if a.kind == "move"]
    assert [a.outcome for a in attempts] == [outcome] * 4  # max_reasks 3
    if detail:
        assert {a.detail for a in attempts} == {detail}
    assert episode.state.won[0] == 0
    assert episode.over


@each_row("transient", [False, True])
def test_a_dead_server_ends_the_auction(transient):
    def dead(request):
        if len(client.seen) > 6:
            raise ClientError("the server is gone", transient=transient)

    client = Spy(dead)
    with pytest.raises(ClientError, match="the server is gone"):
        auction(client, seats=1, learning=True)


# -- settings, other games, series -----------------------------------------------------------------


@each_row(
    ("settings", "error"),
    [
        ({"strategy": "adaptiv"}, UnknownName),
        ({"belief_checks": 0}, BadParameter),
        ({"plan_reasks": -1}, BadParameter),
        ({"belief_fallback": "never"}, BadParameter),
        ({"bidder_names": "loose"}, BadParameter),
        ({"learning": "yes"}, BadParameter),
    ],
)
def test_bad_settings(settings, error):
    with pytest.raises(error):
        llm_player(ScriptedClient(legal), settings)


def test_a_setting_of_planning_makes_a_planner():
    assert type(llm_player(ScriptedClient(legal), {"temperature": 0.5})) is LLMPolicy
    planner = llm_player(ScriptedClient(legal), {"strategy": "static", "temperature": 0.5})
    assert (planner.planning.strategy, planner.sampling.temperature) == ("static", 0.5)


@each_row("game", ["public_goods", "battle_royale", "water_allocation"])
def test_any_game_can_be_planned(game):
    client = Spy()
    policy = PlanningPolicy(client, Planning(learning=True))
    rules = rulebook(game)
    seats = [policy] + [make_player("random")] * (rules.players - 1)
    episode = play(rules, seats, seed=4, max_steps=400)
    kinds = {request.kind for request in client.seen}
    assert kinds >= {"plan", "move", "belief", "learn"}
    assert notes(episode, "plan")[0]["plan"] == "I do as they do."


def run_of(tmp_path, script=legal, **game):
    from llm_games.baselines.players import PLAYERS, Kind

    PLAYERS["spy"] = Kind("for tests", model=lambda v, c, s: llm_player(ScriptedClient(script), s))
    try:
        seats = [{"player": "spy", "strategy": "adaptive", "learning": True}, "rule:2", "naive"]
        goals = {"objective": ["items", "profit", "profit"]}
        params = {"players": 3, "items": "items_3", **goals}
        entry = {"game": "english_auction", "params": params}
        raw = {"episodes": 4, "seats": seats, "games": [entry | game]}
        plan = resolve(parse(raw, "test"), "test")
        path = tmp_path / "a.db"
        made = players(plan)
        started = []

        def opened():
            started.append(1)
            return start(plan, path) if len(started) == 1 else Store.open(path)

        play_run(opened, plan, made)
        with Records.open_readonly(path) as records:
            assert replay(records).differences == ()
        return path
    finally:
        del PLAYERS["spy"]


def test_a_series_carries_lessons_on_and_seats_change(tmp_path):
    path = run_of(tmp_path, order="shuffled", series=True)
    with Records.open_readonly(path) as records:
        episodes, game = records.episodes(), planned(records).games[0]
        assert len({tuple(e.seating) for e in episodes}) > 1
        for before, episode in zip([None, *episodes], episodes, strict=False):
            seat = episode.seats.index("spy")
            assert episode.rules().objectives[seat] == "items"
            noted = [n for n in records.notes(episode.id) if n.kind == "lessons"]
            assert [n.seat for n in noted] == [seat]
            system = records.messages(records.attempts(episode.id)[0].prompt)[0]["content"]
            assert ("Bid less." in system) == (before is not None)
            numbered = {(row.game.id, row.number): row for row in episodes}
            heard = recalled(game, records, episode, numbered)
            assert list(heard) == ([seat] if before else [])
            if before:
                assert Note("lessons", {"lessons": ["Bid less.", "Wait."]}) in heard[seat]


def test_kinds_and_details_are_recorded(tmp_path):
    def sometimes(request):
        if request.kind == "move" and request.seed % 3 == 0:
            return '{"bid": 999999}'
        return legal(request)

    with Records.open_readonly(run_of(tmp_path, sometimes)) as records:
        rows = [row for e in records.episodes() for row in records.attempts(e.id)]
    assert {row.kind for row in rows} == {"plan", "move", "belief", "replan", "learn"}
    assert {row.detail for row in rows if row.outcome == "out_of_range"} == {"over_budget"}


def test_config_names_the_bad_key():
    raw = {"games": [{"game": "english_auction", "order": "random"}]}
    with pytest.raises(ConfigError, match="order"):
        parse(raw, "test")


def test_opponents_of_a_learner_are_asked_together_and_hear_everything():
    """Two models wait for each other, so asking one after another would never end."""
    together = asyncio.Barrier(2)

    class Waiting(Spy):
        async def complete(self, request):
            if request.kind == "move" and "item 1 of" in request.messages[-1]["content"]:
                async with asyncio.timeout(20):
                    await together.wait()
            return await super().complete(request)

    clients = Waiting(), Waiting()
    opponents = [PlanningPolicy(client, Planning(strategy="static"), mind_of) for client in clients]
    env = SingleAgentEnv("english_auction", opponents=opponents, players=3, items="items_2")
    env.reset(seed=1)
    done = False
    while not done:
        _, _, terminated, truncated, _ = env.step(0)
        done = terminated or truncated
    for client in clients:
        assert "Widget A" in client.said("belief")[0]
