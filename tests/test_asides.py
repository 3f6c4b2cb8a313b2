"""What a game asks a seat beside its moves: when, in which words, and what is shown again."""

import json
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from playing import each_row
from test_play import person as person_of

from llm_games.asides import Aside, Text
from llm_games.errors import BadParameter
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.words import Notes, Prompts
from llm_games.wrappers.clients.base import ClientError, Completion
from llm_games.wrappers.clients.cache import ReplyCache
from llm_games.wrappers.clients.sampled import ReplySampler
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.mind import Mind
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.play import play
from llm_games.wrappers.policy import Note, RandomPolicy

ROOT = Path(__file__).parents[1]
MOOD = Text("mood", "how you feel", ("panic",))
AIM = Text("aim", "what you want")
WORDS = """
{% block rules %}The rules.{% endblock %}
{% block report %}{% if last %}The last pot: {{ last.pot }}.{% endif %}{% endblock %}
{% block request %}
{{ "Your mood: " ~ notes.mood[-1].mood | quoted ~ "." if notes.mood }}
{{ "Your aims: " ~ notes.aim | map("quoted") | join(", ") ~ "." if notes.aim }}
How much? {{ form }}
{% endblock %}
{% block talk %}Soon: how much? You feel {{ notes.mood | map(attribute="mood") | join }}.
{% endblock %}
{% block mood %}Round {{ round }}: how do you feel about {{ topic }}? {{ form }}{% endblock %}
{% block aim %}Aims so far: {{ notes.aim | length }}. What do you want? {{ form }}{% endblock %}
"""


class Feeling(PublicGoods):
    """Everybody is asked for a mood before the talk, and in even rounds for an aim after it."""

    def asides(self, state, seat, phase):
        if phase == "talk":
            return (Aside("mood", MOOD, {"topic": f"seat {seat}"}),)
        done = int(state.round)
        return (Aside("aim", AIM, hears=True, shown_again=2),) if done % 2 == 0 else ()


@pytest.fixture
def table(tmp_path):
    """Return how to play a game of such rules, and what its models were asked."""
    folder = tmp_path / "public_goods"
    folder.mkdir()
    (folder / "mine.j2").write_text(WORDS)

    def start(replies=None, talk=None, rounds=4, policy=LLMPolicy, **settings):
        requests = []

        def script(request):
            requests.append(request)
            said = {
                "mood": {"mood": f"mood {len(requests)}", "panic": True},
                "aim": {"aim": f"aim {len(requests)}"},
                "speech": {"speech": "hello"},
                "move": {"tokens_contributed": 5},
            }
            own = {kind: json.dumps(answer) for kind, answer in said.items()} | (replies or {})
            return own.get(request.kind, '{"plan": "p", "summary": "s"}')

        game = Feeling(players=2, rounds=rounds)
        game = rulebook(game, talk=talk) if talk else game
        asked = policy(
            ScriptedClient(script), prompts="mine", prompt_folder=str(tmp_path), **settings
        )
        return play(game, [asked, RandomPolicy()], 1), requests

    return start


def kinds(requests):
    return [request.kind for request in requests]


def last(request):
    return request.messages[-1]["content"]


def test_asides_come_before_the_move_in_their_order(table):
    episode, requests = table()
    assert kinds(requests) == ["mood", "aim", "move", "mood", "move"] * 2
    assert [step.decisions[0].action for step in episode.steps] == [5] * 4
    assert [request.who.call for request in requests[:3]] == [0, 1, 2]
    attempts = [attempt.kind for attempt in episode.steps[0].decisions[0].attempts]
    assert attempts == ["mood", "aim", "move"]


def test_with_talk_each_comes_at_its_place_and_once(table):
    episode, requests = table(talk={"turns": 2}, rounds=2)
    assert kinds(requests) == [
        *("mood", "speech", "speech", "aim", "move"),
        *("mood", "speech", "speech", "move"),
    ]
    first, *_ = (step.decisions[0] for step in episode.steps)
    assert [attempt.kind for attempt in first.attempts] == ["mood", "speech"]
    assert first.action == "hello"
    heard = '- you: "hello"'
    assert [heard in last(request) for request in requests[:5]] == [False, False, True, True, True]


def test_without_turns_of_talk_it_is_the_silent_game(table):
    mute, requests = table(talk={"turns": [0, 1], "silent": [0]}, rounds=2)
    silent, others = table(rounds=2)
    assert kinds(requests) == kinds(others) == ["mood", "aim", "move", "mood", "move"]
    assert mute.records == silent.records


def test_answers_are_notes_and_shown_again(table):
    episode, requests = table()
    decisions = [step.decisions[0] for step in episode.steps]
    assert decisions[0].notes == (
        Note("mood", {"mood": "mood 1", "panic": True}),
        Note("aim", {"aim": "aim 2"}),
    )
    texts = [last(request) for request in requests]
    assert texts[0] == f"Round 1: how do you feel about seat 0? {MOOD.form()}"
    assert texts[1] == f"Aims so far: 0. What do you want? {AIM.form()}"
    asked = zip(texts, kinds(requests), strict=True)
    moves = [text.splitlines() for text, kind in asked if kind == "move"]
    assert moves[0][:2] == ['Your mood: "mood 1".', 'Your aims: "aim 2".']
    assert moves[-1][-3:-1] == ['Your mood: "mood 9".', 'Your aims: "aim 2", "aim 7".']
    _, requests = table(rounds=6)
    assert 'Your aims: "aim 7", "aim 12".' in last(requests[-1])  # the latest two


def test_speakers_are_shown_the_block_of_their_own(table):
    _, requests = table(talk={"turns": 1}, rounds=1)
    shown = last(requests[1]).split("\n\n")
    assert shown[0] == "Soon: how much? You feel mood 1."
    assert "your turn to talk, player_0" in shown[1]


def test_asides_stay_in_the_dialogue_and_what_happened_is_told_once(table):
    _, requests = table()
    roles = [message["role"] for message in requests[-1].messages]
    assert roles == ["system", *["user", "assistant"] * 9, "user"]
    told = [m["content"] for m in requests[-1].messages if m["role"] == "user"]
    assert [text.startswith("The last pot") for text in told] == [
        *(False, False, False),
        *(True, False, True, False, False, True, False),
    ]
    _, requests = table(notices=False)
    roles = [message["role"] for message in requests[-1].messages]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    assert last(requests[-3]).startswith("The last pot")  # there it stands before each


@each_row("kind", [partial(LLMPolicy, notices=True), PlanningPolicy])
def test_what_happened_between_a_speech_and_the_move_is_told(kind):
    """Others may move in between; a move after them must not rest on what was told before."""
    game, asked = rulebook("battle_royale", players=3, max_shots=4, talk={"turns": 1}), []

    def script(request):
        asked.append(request)
        return request.question.reply(request.question.sample(Noise(len(asked))))

    play(game, [kind(ScriptedClient(script)), RandomPolicy(), RandomPolicy()], 4)
    words = Prompts("battle_royale")
    chats = [request for request in asked if request.kind in ("speech", "move")]
    assert len(chats) > 3
    for request in chats:
        told = [message["content"] for message in request.messages]
        assert any(words.report(request.view) in text for text in told)


@each_row("reply", ["?", '{"mood": ""}', '{"mood": 3}', Completion("", finish="refusal")])
def test_what_cannot_be_read_leaves_the_notes_as_they_are(table, reply):
    episode, requests = table({"mood": reply}, rounds=2)
    assert kinds(requests) == ["mood"] * 3 + ["aim", "move"] + ["mood"] * 3 + ["move"]
    assert [note.kind for note in episode.steps[0].decisions[0].notes] == ["aim"]
    assert "Your mood" not in last(requests[-1])
    assert [step.decisions[0].action for step in episode.steps] == [5, 5]


def test_a_flag_that_is_not_said_is_unknown():
    for reply, panic in (('"panic": false', False), ('"panic": "no"', None), ('"x": 1', None)):
        found = read_reply(f'{{"mood": "calm", {reply}}}', MOOD)
        assert found.action == {"mood": "calm", "panic": panic}
    assert read_reply('{"panic": true}', MOOD).outcome == "unparsable"
    drawn = MOOD.sample(Noise(1))
    assert read_reply(MOOD.reply(drawn), MOOD).action == drawn
    assert MOOD.allows(MOOD.reply(drawn)[:-3])
    assert MOOD.form() == '{"mood": <how you feel>, "panic": <true or false>}'


def test_sampling_seeds_of_moves_do_not_hang_on_asides(table):
    _, requests = table()
    plain = []

    def script(request):
        plain.append(request)
        return '{"tokens_contributed": 5}'

    play(PublicGoods(players=2, rounds=4), [LLMPolicy(ScriptedClient(script)), RandomPolicy()], 1)
    seeds = [request.seed for request in requests]
    assert [r.seed for r in requests if r.kind == "move"] == [r.seed for r in plain]
    assert len(set(seeds)) == len(seeds)


def test_a_server_that_dies_at_an_aside_makes_no_move(table):
    class Gone:
        name = "gone"
        calls = 0

        async def complete(self, request):
            self.calls += 1
            raise ClientError("no route")

        async def close(self):
            pass

    gone = Gone()
    with pytest.raises(ClientError, match="no route"):
        table(policy=lambda client, **settings: LLMPolicy(gone, **settings))
    assert gone.calls == 1


def test_planners_are_asked_as_well(table):
    def planner(client, **settings):
        return PlanningPolicy(client, minds=lambda game: Mind, **settings)

    _, requests = table(talk={"turns": 1}, rounds=2, policy=planner)
    assert kinds(requests)[:5] == ["plan", "mood", "speech", "aim", "move"]
    assert requests[4].who.call == 1  # of its decision, after the aim


def test_people_are_asked_for_moves_alone():
    person, said = person_of(["5", "6"])
    episode = play(Feeling(players=2, rounds=2), [person, RandomPolicy()])
    assert [record["actions"][0] for record in episode.records] == [5, 6]
    assert "mood" not in "".join(said)


def test_a_wording_must_have_the_block():
    policy = LLMPolicy(ScriptedClient(lambda request: "{}"))
    with pytest.raises(BadParameter, match=r"public_goods.*v1.j2 lacks the block 'mood'"):
        play(Feeling(players=2, rounds=1), [policy, RandomPolicy()])


def test_notes():
    notes = Notes().plus("a", 1, 2).plus("a", 2, 2)
    assert (notes["a"], notes["b"]) == ((1, 2), ())
    assert notes.plus("a", 3, 2)["a"] == (2, 3)
    assert notes.plus("a", 3, 0)["a"] == ()
    assert notes["a"] == (1, 2)


def test_samples_of_replies_are_kept_by_situation_only_where_numbers_tell_all(tmp_path):
    kept = ReplySampler(ScriptedClient([]), ReplyCache(tmp_path / "replies.db"), samples=2)
    policy, plain = LLMPolicy(kept), PublicGoods(players=2, rounds=1)
    assert policy._situations(plain) is not None
    assert policy._situations(Feeling(players=2, rounds=1)) is None
    assert policy._situations(rulebook(plain, talk={"turns": 1})) is None


def test_words_of_an_aside_in_a_batch_of_one():
    game = Feeling(players=2, rounds=1)
    view = View.of(game, game.reset(1), 0)
    aside = Aside("rules", AIM)  # any block will do
    assert Prompts("public_goods").aside(view, aside, reasoning=True).endswith('"explanation".')
    assert np.shape(view.seat) == ()


# -- in the same reply ----------------------------------------------------------------------------

FULL = (
    """{"understanding": " Guess low. ", "popular_answer": 33.5, "answer": 20, "reason": "So."}"""
)
REMARKS = [
    ("beauty_contest", "answer", FULL, ["understanding", "popular_answer", "reason"]),
    ("beauty_contest", "answer", '{"answer": 20}', []),
    ("beauty_contest", "answer", '{"answer": 20, "popular_answer": "a third"}', []),
    ("beauty_contest", "answer", '{"answer": 20, "popular_answer": NaN}', []),
    ("beauty_contest", "answer", '{"answer": 20, "popular_answer": 1e999}', []),
    ("budget_auction", "bid", '{"bid": 20, "reason": "Cheap."}', ["reason"]),
    ("water_allocation", "bid", '{"bid": 20, "reason": "Thirst."}', ["reason"]),
]


@each_row(("name", "key", "reply", "kinds"), REMARKS)
def test_what_a_reply_says_beside_its_answer_is_noted_down(name, key, reply, kinds):
    remarks = "alympics" if name == "water_allocation" else "econ_arena"
    preset = "setting_1" if name == "water_allocation" else "econ_arena"
    game = rulebook(name, preset=preset, remarks=remarks)
    policy = LLMPolicy(ScriptedClient(lambda request: reply))
    view = View.of(game, game.reset(0), 0)
    decision, _ = policy.act(view, policy.start(game, 0, 1))
    assert [note.kind for note in decision.notes] == kinds
    assert decision.outcome == "valid"
    asked = decision.attempts[0].messages[-1]["content"]
    assert '"reason": <' in asked
    assert game.asks(view.sight.state, 0).legal()["required"] == [key]


def test_with_a_history_other_remarks_are_asked_for():
    later = {
        "beauty_contest": ["goal", "previous_answer", "answer", "reason"],
        "budget_auction": ["goal", "previous_bid", "previous_payoff", "bid", "reason"],
    }
    for name, keys in later.items():
        for reveal, asked in (("shown", keys), ("hidden", None)):
            last = {"reveal_last": "all" if reveal == "shown" else 0, "rounds": 2}
            last |= {"reveal": "bids"} if name == "budget_auction" else {}
            game = rulebook(name, preset="econ_arena", remarks="econ_arena", **last)
            state = game.reset(0)
            first = [*game.asks(state, 0).schema()["properties"]]
            state, _ = game.step(state, np.full(game.players, 5 * game.unit))
            assert [*game.asks(state, 0).schema()["properties"]] == (asked or first)


def test_the_papers_files_ask_for_them():
    for paper, game, kind in (
        ("econ_arena", "beauty_contest", "econ_arena"),
        ("econ_arena", "budget_auction", "econ_arena"),
        ("alympics", "water_allocation", "alympics"),
    ):
        text = (ROOT / f"benchmarks/papers/{paper}/vanilla.toml").read_text("utf-8")
        games = [g for g in tomllib.loads(text)["games"] if g["game"] == game]
        assert games
        assert all(g["params"]["remarks"] == kind for g in games)
