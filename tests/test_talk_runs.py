"""Talk in experiments: what was announced, recorded, shown, judged and exported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fault_server import FaultServer
from playing import each_row

import llm_games as lg
from llm_games.benchmarks.ghosts.fit import find, played
from llm_games.benchmarks.judge import model_labels
from llm_games.benchmarks.judge.talk_measures import _pull, persuasion, talked, transcript, turns
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.record.schema import TALK
from llm_games.benchmarks.run.api import Results
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.benchmarks.run.plan import Overrides, plan_of
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.run.resume import planned
from llm_games.errors import BadParameter
from llm_games.game_rooms import ROOMS
from llm_games.noise import Noise
from llm_games.questions import Choice, Integer, Real, Shares, Speech, Target
from llm_games.registry import rulebook
from llm_games.wrappers.clients.base import ClientError, Completion, ContextOverflow


@each_row("game", sorted(ROOMS))
def test_every_move_can_be_announced(game: str) -> None:
    rules = rulebook(game)
    state = rules.reset(0)
    seat = int(np.flatnonzero(rules.asked(state))[0])
    question = rules.question(state, seat)
    assert question is not None
    for number in range(20):
        action = question.sample(Noise(number))
        said = question.spoken(action)
        assert question.named(f"I will choose {said}.") == action
        assert question.named(f"I will not choose {said}.") is None
        assert question.named(f"Will you choose {said}?") is None


def test_what_a_text_announces() -> None:
    number = Integer("number", 0, 100)
    said = {
        "I will choose 20.": 20,
        "Let's all choose 1,000.": None,
        "Player 3, hear me: I choose 40.": 40,
        "player_3 said 40. My number is 33.": 33,
        "You should choose 20.": None,
        "I choose 20. You should choose 30.": 20,
        "I choose 20 or 30.": None,
        "If you choose 20, I choose 30.": None,
        "Everyone picks 50!": 50,
        "What about 5-10": None,
        "In round 2 we all play $7.": 7,
        "": None,
    }
    assert {text: number.named(text) for text in said} == said
    assert Real("price", 0, 2000, 2).named("I set 7.25 dollars.") == 725
    dish = Choice("dish", {"costly": 1, "cheap": 0})
    assert dish.named("I take the Costly one.") == 1
    assert dish.named("Costly or cheap, I do not care.") is None
    aim = Target("target", {"player_1": 1, "player_12": 12}, {"player_0": 0}, {}, nowhere=13)
    assert aim.named("I shoot player_12.") == 12
    assert aim.named("I aim at Player 1.") == 1
    assert aim.named("I aim at nobody.") == -1
    plan = Shares("proposal", (1, 2, 3), 10, 3)
    assert plan.named("My plan: 8, 0 and 2.") == (8, 0, 2)
    assert plan.named("My plan: 8, 0 and 3.") is None


# -- runs ------------------------------------------------------------------------------------------

HEARD = re.compile(r'"I (?:will )?(?:give|choose) (\d+)')


class Speaker:
    def __init__(self, number=7, follows=False, dies_at=None, says="I give {}."):
        self.name, self.number, self.follows = f"speaker {number}", number, follows
        self.dies_at, self.says, self.calls = dies_at, says, 0

    async def complete(self, request):
        self.calls += request.kind != "greeting"
        if self.calls == self.dies_at:
            raise ClientError("the server is gone")
        if request.question is None:
            return Completion("Hello.")
        heard = HEARD.findall(request.messages[-1]["content"]) if self.follows else []
        number = int(heard[-1]) if heard else self.number
        if isinstance(request.question, Speech):
            return Completion(json.dumps({"speech": self.says.replace("{}", str(number))}))
        return Completion(request.question.reply(number))

    async def close(self):
        pass


def config(**more):
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 2}} | more
    game.setdefault("talk", {"turns": 2, "order": "fixed"})
    return {"title": "Talk", "episodes": 2, "games": [game]}


def test_settings_of_talk(tmp_path):
    silent, talking = (plan_of(config(talk=talk)).games[0] for talk in ({}, {"turns": 2}))
    assert "talk" not in silent.params
    assert talking.params["talk"] == {"turns": 2}
    assert talking.seeds == silent.seeds
    assert talking.rules().core == silent.rules() != talking.rules()
    over = Overrides.of(talk={"turns": 0}, params={"players": 4})
    [game] = plan_of(config(), over).games
    assert game.rules() == rulebook("public_goods", players=4, rounds=2)
    with pytest.raises(ConfigError, match=r"games\[0\].params = 3"):
        plan_of(config(params=3), over)
    [game] = plan_of(config(talk={"turns": 1, "words": "none"})).games
    assert game.params["talk"]["words"] is None
    with pytest.raises(ConfigError, match=r"games\[0\].*did you mean 'turns'"):
        plan_of(config(talk={"turn": 2}))
    with pytest.raises(ConfigError, match="silent leave nobody"):
        plan_of(config(talk={"turns": 2, "silent": [0, 1, 2]}))


def test_the_longest_chain_of_calls():
    from llm_games.benchmarks.run.estimate import estimate
    from llm_games.benchmarks.run.plan import players

    def chain(**more):
        plan = plan_of({"seats": ["tiny"], **config(**more)})
        [found] = estimate(plan, players(plan))
        return found.low.calls, found.chain

    assert chain(talk={}) == (2 * 2 * 3, 2)
    assert chain() == (2 * 2 * (6 + 3), 2 * (6 + 1))
    assert chain(talk={"turns": 2, "mode": "together"}) == (2 * 2 * 9, 2 * (2 + 1))
    assert chain(talk={"turns": 1, "silent": [0]}) == (2 * 2 * 5, 2 * (2 + 1))
    assert chain(series=True) == (36, 2 * 14)


@pytest.fixture(scope="module")
def talked_run(tmp_path_factory):
    """One who speaks and keeps its word, one who follows what it heard, and one without words."""
    folder = tmp_path_factory.mktemp("talk")
    seats = [Speaker(7), Speaker(3, follows=True), "fixed:5"]
    runs = {}
    for name, talk in (("talk", {"turns": 1, "order": "fixed"}), ("silent", {"turns": 0})):
        said = config(seats=seats, order="fixed", talk=talk)
        lg.run(said, folder / f"{name}.db")
        runs[name] = folder / f"{name}.db"
    return runs


def test_what_is_recorded_of_talk(talked_run):
    with Records.open_readonly(talked_run["talk"]) as records:
        [game] = games(records)
        episode = game.episodes[0]
        spoken = [step for step in episode.every_step if step.talk]
        assert [step.asked for step in spoken] == [[0], [1], [0], [1]]
        assert spoken[0].record["actions"] == ["I give 7.", "", ""]
        assert spoken[0].record["hearers"] == [[1, 2], [], []]
        first = episode.decisions()[0]
        assert (first.action, first.phase, first.outcome) == ("I give 7.", TALK, "valid")
        assert [step.record["actions"] for step in episode.steps] == [[7, 7, 5]] * 2
        assert game.did.decisions == 0  # not read yet
        assert game.rules == rulebook("public_goods", players=3, rounds=2)
        assert {a.kind for a in episode.attempts()} == {"speech", "move"}
        assert "talk" in episode.row.edition
        assert replay(records).differences == ()
    with Records.open_readonly(talked_run["silent"]) as records:
        assert "talk" not in records.episodes()[0].edition
        assert not any(step.talk for step in games(records)[0].episodes[0].every_step)


def test_how_players_talked(talked_run):
    with Records.open_readonly(talked_run["talk"]) as records:
        [game] = games(records)
        did = list(talked(game).values())
        assert [(d.turns, d.messages, d.words, d.digits) for d in did] == [
            (4, 4, 12, 4), (4, 4, 12, 4), (0, 0, 0, 0),
        ]  # fmt: skip
        assert [(d.announced, d.kept) for d in did] == [(4, 4), (4, 4), (0, 0)]
        lines = list(transcript(game.episodes[0]))
    assert lines[:4] == [
        "Round 1",
        '  turn 1, player_0: "I give 7." (heard by all)',
        '  turn 1, player_1: "I give 7." (heard by all)',
        "  move, player_0: 7 (as announced)",
    ]


def test_what_is_counted_of_messages(tmp_path):
    path, talk = tmp_path / "run.db", {"turns": 1, "order": "fixed", "words": 2}
    seats = [Speaker(7), Speaker(8, says=""), "fixed:5"]
    done = lg.run(config(seats=seats, order="fixed", talk=talk), path)
    long, silent, mute = done.talk["public_goods"].values()
    assert (long.messages, long.words, long.too_long, long.announced) == (4, 8, 4, 0)
    assert (silent.turns, silent.messages, silent.unread) == (4, 0, 0)
    assert mute.turns == 0
    with Records.open_readonly(path) as records:
        assert records.steps(1)[0].record["actions"][0] == "I give"


class Babbler(Speaker):
    async def complete(self, request):
        if isinstance(request.question, Speech):
            return Completion("well")
        return await super().complete(request)


def test_what_cannot_be_read_is_silence(tmp_path):
    done = lg.run(config(seats=[Babbler(7)], talk={"turns": 1}), tmp_path / "run.db")
    [did] = done.talk["public_goods"].values()
    assert (did.turns, did.messages, did.unread) == (12, 0, 12)
    assert done.games["public_goods"].filled_in == 0
    assert done.games["public_goods"].payoffs == [2 * (20 - 7 + 14)] * 3


def test_who_persuaded_whom(talked_run):
    files = [Records.open_readonly(talked_run[name]) for name in ("talk", "silent")]
    with files[0], files[1]:
        (talk,), (silent,) = map(games, files)
        found = persuasion(talk, silent)
        with pytest.raises(BadParameter, match="talked, too"):
            persuasion(talk, talk)
    assert found.episodes == 2
    moved = found.pairs["player_0", "player_1"]
    assert (moved.heard, moved.changed, moved.named, moved.toward) == (4, 4, 4, 4)
    assert found.pairs["player_1", "player_0"].changed == 0
    assert (found.first.heard, found.first.changed, found.first.toward) == (6, 2, 2)
    assert all(pair[1] != "player_2" or did.changed == 0 for pair, did in found.pairs.items())


def test_commands(talked_run, llm_games):
    code, out, _ = llm_games("analyse", "talk", talked_run["talk"], "--episode", 1, "--json")
    told = json.loads(out)
    assert code == 0
    assert [row["kept"] for row in told["words_kept"]] == [1.0, 1.0, None]
    assert told["said"]["public_goods"][0] == "Round 1"
    at = ("analyse", "talk", talked_run["talk"], "--silent", talked_run["silent"])
    _, out, _ = llm_games(*at)
    assert "toward" in out
    for said in ("The reading is not sure", "labelled by hand", "by the same rule"):
        assert said in " ".join(out.split())
    assert "nobody can talk" in llm_games("analyse", "talk", talked_run["silent"])[2]
    code, out, _ = llm_games("compare", talked_run["silent"], talked_run["talk"], "--json")
    [game] = json.loads(out)["games"]
    assert game["payoffs"]["pairs"] == 2
    assert "played with different talk" in game["notes"]
    code, out, _ = llm_games("report", talked_run["talk"], talked_run["silent"], "--compare")
    page = Path("report.html").read_text()
    assert "Who persuaded whom" in page
    assert "&#34;I give 7.&#34;" in page


def test_a_trace(talked_run, llm_games):
    assert llm_games("export", talked_run["talk"], "--format", "trace", "-o", "out")[0] == 0
    lines = [json.loads(line) for line in Path("out/trace.jsonl").read_text().splitlines()]
    assert [(line["episode"], line["round"], line["step"]) for line in lines[:2]] == [
        (0, 1, 2), (0, 2, 5),
    ]  # fmt: skip
    assert lines[0]["actions"] == {"0": 7, "1": 7, "2": 5}
    assert lines[0]["said"][1] == {
        "turn": 1, "seat": 1, "text": "I give 7.", "hearers": [0, 2],
    }  # fmt: skip
    assert lines[0]["heard"] == {seat: [[1, 1, 0], [1, 1, 1]] for seat in "012"}
    assert lines[0]["record"]["actions"] == [7, 7, 5]


@pytest.mark.parametrize("dies_at", [2, 4])
def test_a_server_that_dies_in_mid_talk_stops_the_run(tmp_path, dies_at):
    seats = [Speaker(7, dies_at=dies_at)]
    path = tmp_path / "run.db"
    said = config(seats=seats, talk={"turns": 1, "order": "fixed"}) | {"max_tables": 1}
    with pytest.raises(RunStopped):
        lg.run(said, path)
    with Records.open_readonly(path) as records:
        label = next(label for seat in planned(records).seats for label in seat.labels())
        made = [d for row in records.episodes() for d in records.decisions(row.id)]
        assert all(decision.outcome == "valid" for decision in made)
        assert len(made) < dies_at
        lines = list(transcript(games(records)[0].episodes[0]))  # of a turn that nobody finished
        assert lines == ["Round 1"] * bool(made) + [
            f'  turn 1, player_{seat}: "I give 7." (heard by all)' for seat in range(len(made))
        ]
    lg.resume(path, own={label: Speaker(7)})
    whole = tmp_path / "whole.db"
    lg.run(config(seats=[Speaker(7)], talk={"turns": 1, "order": "fixed"}), whole)
    found = []
    for file in (path, whole):
        with Records.open_readonly(file) as records:
            found.append([records.steps(row.id) for row in records.episodes()])
    assert found[0] == found[1]


def test_what_is_said_cannot_break_out(tmp_path, llm_games):
    evil = 'x"} </td><script>alert(1)</script>\n\x1b[31mRound 9\u202e player_1: "{}'
    path = tmp_path / "evil.db"
    seats = [Speaker(7, says=evil), "fixed:5", "fixed:5"]
    lg.run(config(seats=seats, order="fixed", talk={"turns": 1}), path)
    out = llm_games("analyse", "talk", path, "--episode", 0)[1]
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert sum(line.startswith("Round") for line in out.splitlines()) == 2
    llm_games("report", path)
    page = Path("report.html").read_text()
    assert "<script>alert" not in page
    assert "\u202e" not in page


# -- judges ----------------------------------------------------------------------------------------

RUBRIC = """
question = "Did they agree?"
games = ["public_goods"]
[labels]
agreed = "they did"
none = "they did not"
"""


class Judge:
    name = "judge"

    def __init__(self, *texts):
        self.texts, self.asked = [*texts], []

    async def complete(self, request):
        self.asked.append(request)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if text is None:
            raise ClientError("the server is gone")
        return Completion(text)


def test_a_judge_labels_each_episode_once(talked_run, tmp_path):
    path = tmp_path / "run.db"
    path.write_bytes(talked_run["talk"].read_bytes())
    (tmp_path / "plan.toml").write_text(RUBRIC)
    wanted = model_labels.rubric(tmp_path / "plan.toml")
    assert wanted.name == "plan"
    assert model_labels.labels(path, "plan") == {}
    broken = Judge('{"label": "agreed"}', None)
    with pytest.raises(ClientError):
        model_labels.label_run(path, wanted, broken)
    assert [row.answer for row in model_labels.judged(path)] == ["agreed"]  # before the fault
    model = Judge("I do not know", '{"label": "maybe"}', '{"label": "none"}')
    rows = model_labels.label_run(path, wanted, model)
    assert list(model_labels.labels(path, "plan").values()) == ["agreed", "none"]
    assert model_labels.label_run(path, wanted, model) == rows
    assert len(model.asked) == 3  # of the second episode alone
    shown = model.asked[0].messages
    assert '"I give 7."' in shown[1]["content"]
    assert "they did not" in shown[0]["content"]
    stubborn = Judge("no")
    stubborn.name = "stubborn"
    found = [r for r in model_labels.label_run(path, wanted, stubborn) if r.judge == "stubborn"]
    assert [(row.answer, row.outcome) for row in found] == [(None, "unparsable")] * 2
    assert len(stubborn.asked) == 2 * model_labels.ATTEMPTS
    stubborn.texts = ['{"label": "none"}']  # no label is asked for again, and takes its place
    found = [r for r in model_labels.label_run(path, wanted, stubborn) if r.judge == "stubborn"]
    assert [row.answer for row in found] == ["none"] * 2
    path.unlink()
    lg.run(config(), path)
    assert model_labels.judged(path) == []  # another run of the same name


def test_what_a_judge_or_its_server_gets_wrong_is_no_label(talked_run, tmp_path, llm_games):
    path, rubric = tmp_path / "run.db", tmp_path / "plan.toml"
    path.write_bytes(talked_run["talk"].read_bytes())
    rubric.write_text(RUBRIC)
    reached = "client={max_wait=0.05}"
    outcomes = {"refusal": "refused", "too long": "truncated", "10 MB": "truncated"}

    def asked(url):
        at = ("--rubric", rubric, "--seat", "openai:m", "--base-url", url, "--set", reached)
        return llm_games("analyse", "judge", path, *at)

    with FaultServer() as server:
        for name in ("wrong schema", "no text", "10 MB", "too long", "refusal", "injection"):
            server.choose = lambda body, number, name=name: name
            code, out, err = asked(server.url)
            outcome = outcomes.get(name, "unparsable")
            assert (code, f"no label: 2 {outcome};" in err) == (0, True), (name, out, err)
            assert {(row.answer, row.outcome) for row in model_labels.judged(path)} == {
                (None, outcome)
            }
        longest = max(len(json.dumps(body)) for body in server.seen)
        assert longest < 3 * model_labels.AGAIN + 10_000  # 10 MB are not sent back
        model_labels.sidecar(path).unlink()
        for name in ("bad key", "500", "no message", "page", "reset in the body"):
            server.choose = lambda body, number, name=name: name
            code, _, err = asked(server.url)
            assert (code, err.startswith("stopped: ")) == (1, True), (name, err)
            assert model_labels.judged(path) == []
    code, _, err = asked(server.url)  # which is gone
    assert code == 1
    assert "cannot reach" in err


def test_an_episode_that_is_too_long_for_a_judge_stops_no_other(talked_run, tmp_path):
    path = tmp_path / "run.db"
    path.write_bytes(talked_run["talk"].read_bytes())
    (tmp_path / "plan.toml").write_text(RUBRIC)

    class Short(Judge):
        async def complete(self, request):
            if request.who.episode == 1:
                raise ContextOverflow("the chat is too long for the model")
            return await super().complete(request)

    rows = model_labels.label_run(
        path, model_labels.rubric(tmp_path / "plan.toml"), Short('{"label": "none"}')
    )
    assert [(row.answer, row.outcome) for row in rows] == [(None, "failed"), ("none", "valid")]
    assert model_labels.labels(path, "plan") == {2: "none"}
    assert model_labels.unlabelled(rows) == "1 failed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("question = 3", "question = 3: it should be a valid string"),
        ('question = "Who?"\n[labels]\none = "x"', "labels"),
        ('question = "Who?"\nkind = 1\n[labels]\na = "x"\nb = "y"', "there is no key kind"),
        ("question = ", "cannot be read"),
    ],
)
def test_rubrics_that_cannot_be(text, why, tmp_path):
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(ConfigError, match=why):
        model_labels.rubric(tmp_path / "r.toml")
    with pytest.raises(ConfigError, match="there is no rubric nothing"):
        model_labels.rubric("nothing")


# -- others that read a run ------------------------------------------------------------------------


def test_recorded_players_speak_again_and_ghosts_do_not(talked_run, tmp_path):
    seats = [f"recorded:{talked_run['talk']}"] * 2 + ["fixed:5"]
    again = config(seats=seats, order="fixed", talk={"turns": 1, "order": "fixed"})
    lg.run(again, tmp_path / "again.db")
    steps = []
    for path in (talked_run["talk"], tmp_path / "again.db"):
        with Records.open_readonly(path) as records:
            steps.append([records.steps(row.id) for row in records.episodes()])
    assert steps[0] == steps[1]
    found = find(talked_run["talk"], rulebook("public_goods", players=3, rounds=2), 0)
    known = played(found)
    assert known.action.tolist() == [7] * 4  # its moves alone, in two episodes


def test_symbols_are_recorded_and_replayed(tmp_path):
    path = tmp_path / "symbols.db"
    talk = {"turns": 1, "order": "fixed", "alphabet": 9}
    lg.run(config(seats=[Speaker(7), "fixed:5", "fixed:5"], order="fixed", talk=talk), path)
    with Records.open_readonly(path) as records:
        [game] = games(records)
        first = game.episodes[0].every_step[0]
        assert (first.record["phase"], first.record["actions"]) == ("talk", [7, 0, 0])
        assert replay(records).differences == ()
        assert next(iter(talked(game).values())).messages == 4
        again = next(played for played in turns(game.episodes[0]) if played.heard)
        seat, [message, *_] = next(iter(again.heard.items()))
        assert _pull(again.questions[seat], message.content, 5, 7) is None  # a symbol names no move
        assert "  turn 1, player_0: symbol 7 (heard by all)" in transcript(game.episodes[0])


def test_skill_is_that_of_the_game_inside(talked_run):
    results = [Results(talked_run[name]) for name in ("talk", "silent")]
    talk, silent = (result.skill["public_goods"] for result in results)
    assert [skill.why for skill in talk] == ["", "", ""]
    assert talk[0] == silent[0]._replace(distance=talk[0].distance, efficiency=talk[0].efficiency)
    assert talk[1].regret == pytest.approx([7 / 3] * 2)  # a token brings 2 / 3
    assert silent[1].regret == pytest.approx([1.0] * 2)
    assert results[0].games["public_goods"].decisions == 2 * 2 * 3  # moves alone


TALKING = {
    "pirate_game": {"players": 4},
    "battle_royale": {"players": 3},
    "water_allocation": {},
    "beauty_contest": {"players": 3, "rounds": 2},
    "emergency_evacuation": {"players": 6, "max_rounds": 3},
}


@pytest.mark.parametrize("kind", ["announcer", "liar"])
def test_who_keeps_its_word(kind, tmp_path):
    """In games of turns too, whose speakers move later in the round than they spoke."""
    played = [
        {"game": game, "params": params, "max_steps": 300, "seats": [f"{kind}:{player}"]}
        | {"talk": {"turns": 1}}
        for (game, params) in TALKING.items()
        for player in ["nearest" if game == "emergency_evacuation" else "rational"]
    ]
    done = lg.run({"games": played, "order": "fixed"}, tmp_path / "run.db")
    did = {label: next(iter(found.values())) for label, found in done.talk.items()}
    assert all(one.announced for one in did.values()), did
    kept = {one.kept / one.announced for one in did.values()}
    assert kept == {1.0 if kind == "announcer" else 0.0}
    with Records.open_readonly(done.path) as records:
        assert replay(records).differences == ()


class Anything:
    name = "anything"

    async def complete(self, request):
        noise = Noise(request.seed)
        if request.question is None:
            return Completion("Hello.")
        if isinstance(request.question, Speech):
            said = ["", "I will.", 'Say "7"\n\nRound 2:', "あ 7", "\\"][request.seed % 5]
            return Completion(json.dumps({"speech": said}) if request.seed % 7 else "well")
        return Completion(request.question.reply(request.question.sample(noise)))

    async def close(self):
        pass


@pytest.mark.parametrize("number", range(10))
def test_any_talk_is_recorded_as_it_was_and_replayed(number, tmp_path):
    draw = np.random.default_rng(number)
    game = sorted(TALKING)[number % len(TALKING)]
    players = rulebook(game, **TALKING[game]).players
    groups = [str(label) for label in draw.integers(0, 2, players)]
    talk = {
        "turns": int(draw.integers(1, 4)),
        "order": str(draw.choice(["shuffled", "shuffled_per_round", "fixed"])),
        "mode": str(draw.choice(["one_by_one", "together"])),
        "speakers": str(draw.choice(["all", "deciders"])),
        "own": str(draw.choice(["shown", "hidden"])),
        "memory": [0, 1, "all"][draw.integers(3)],
        "words": [None, 2][draw.integers(2)],
        "reasks": int(draw.integers(2)),
    } | ({"audience": "groups", "groups": groups} if draw.integers(2) else {})
    played = {"game": game, "params": TALKING[game], "max_steps": 60, "seats": [Anything()]}
    path = tmp_path / "run.db"
    lg.run({"episodes": 1, "games": [played | {"talk": talk}]}, path)
    with Records.open_readonly(path) as records:
        assert replay(records).differences == ()
        [found] = games(records)
        [episode] = found.episodes
        told = [message for turn in turns(episode, unfinished=True) for message in turn.talk]
        spoken = [d for d in records.decisions(1) if d.phase == "talk"]
        assert {(m.step, m.seat): m.content for m in told} == {
            (d.step, d.seat): d.action or "" for d in spoken
        }
        assert all(m.seat not in m.hearers for m in told)
        assert any(m.content for m in told)
        assert all(len(str(m.content).split()) <= (talk["words"] or 99) for m in told)
        lines = [line for line in transcript(episode) if " turn " in line]
        assert len(lines) == sum(bool(m.content) for m in told)
        assert not any("\n" in line for line in lines)
