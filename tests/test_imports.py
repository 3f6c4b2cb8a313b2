"""Recordings in the form of γ-Bench's authors, as runs: made here by playing our games."""

from __future__ import annotations

import json

import pytest

import llm_games as lg
from llm_games.baselines.players import make_player
from llm_games.benchmarks.judge.results import run_results
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.replay import replay
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import Speech
from llm_games.registry import rulebook
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import plain
from llm_games.wrappers.together import run_sync

META = {
    "beauty_contest": ("guessing_game", {"min": 0, "max": 100, "ratio": 2 / 3}),
    "el_farol_bar": (
        "bar_game_explicit",
        {"min": 0, "max": 10, "home": 5, "ratio": 0.6, "mode": "explicit"},
    ),
    "divide_dollar": ("divide_dollar", {"golds": 100}),
    "public_goods": (
        "public_goods",
        {"tokens": 20, "ratio": 2, "token_initialization": "fixed", "reset": True, "rand_min": 11},
    ),
    "diners_dilemma": (
        "diner_dilemma",
        {"cheap_cost": 10, "cheap_utility": 15, "exp_cost": 20, "exp_utility": 20},
    ),
    "sealed_bid_auction": (
        "sealed_bid_auction",
        {"valuation_min": 0, "valuation_max": 200, "interval": 10, "seed": 42}
        | {"mode": "highest bid"},
    ),
    "battle_royale": ("battle_royale", {"base_hit_rate": 35, "interval": 5}),
    "pirate_game": ("pirate_game", {"gold": 100}),
}
WORDS = {"el_farol_bar": ["stay", "go"], "diners_dilemma": ["cheap", "costly"]}
MORE = {"el_farol_bar": {"mode": "explicit"}}


def sample(game, model, number):
    """A game of `random` players in the authors' form, and its own record."""
    strict = rulebook(game, preset="gamma_bench", players=5, **MORE.get(game, {}))
    steps = []

    async def keep(step):
        steps.append(step)

    seated = [make_player("random", strict) for _ in range(5)]
    run_sync(play_table(strict, seated, number, on_step=keep))
    records = [plain(step.outcome) for step in steps]
    players = [{"id": f"player_{i}", "model": model, "records": []} for i in range(5)]
    rounds = []
    for record in records:
        actions = record["actions"]
        words = WORDS.get(game)
        if game == "battle_royale":
            said = "null" if record["target"] < 0 else f"player_{record['target']}"
            row = {"player_shooting": str(record["shooter"]), "responses": [said]}
            rounds.append(row | {"out": bool(record["hit"])})
        elif game == "pirate_game":
            if record["phase"] == 0:
                first = len(rounds)
                rounds.append({"gold_distribution": record["plan"][first:]})
            else:
                votes = record["votes"][first:]
                rounds[-1]["responses"] = ["accept" if vote else "reject" for vote in votes]
        else:
            for player, action in zip(players, actions, strict=True):
                player["records"].append(words[action] if words else action)
            row = {}
            if game == "sealed_bid_auction":
                row = {"valuations": record["valuations"]}
                row |= {"bid_winner": int(record["winner"])}
            if game == "divide_dollar":
                row = {"total_proposal": sum(actions)}
            rounds.append(row)
    meta = {"player_num": 5, "version": "v1", "round_id": len(rounds)} | META[game][1]
    return {"meta": meta, "round_records": rounds, "player_data": players}, records, strict


@pytest.fixture
def folder(tmp_path):
    """A folder with two recordings of each game, and the scores that they stand for."""
    from llm_games.benchmarks.papers.gamma_bench.scores import score_episode

    scores = {}
    for game, (name, _) in META.items():
        for number in range(2):
            data, records, rules = sample(game, "gpt-4", number)
            path = tmp_path / "files" / name / f"{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(data))
            scores[game, number] = score_episode(rules, records, "published")
    return tmp_path / "files", scores


def test_recordings_become_a_run_like_any_other(folder, tmp_path, llm_games):
    files, scores = folder
    code, out, err = llm_games("import", files, "--db", tmp_path / "run.db")
    assert (code, "16 episodes" in out) == (0, True), err
    with Records.open_readonly(tmp_path / "run.db") as records:
        comparison, rows = replay(records), records.episodes()
        found = {result.game: result.scores for result in run_results(records)}
    assert (comparison.episodes, comparison.differences) == (16, ())
    assert {row.source for row in rows} == {"0.json", "1.json"}
    assert found == {game: [scores[game, 0], scores[game, 1]] for game in META}


def test_an_imported_run_is_reported_viewed_compared(folder, tmp_path, llm_games):
    files, _ = folder
    first, other = tmp_path / "first.db", tmp_path / "other.db"
    assert llm_games("import", files, "--db", first)[0] == 0
    assert llm_games("report", first, "-o", tmp_path / "page.html")[0] == 0
    assert "words not" in (tmp_path / "page.html").read_text()
    code, _, err = llm_games("view", first, "--export", tmp_path / "pages")
    assert code == 0, err
    for path in [*files.rglob("*.json")]:
        data = json.loads(path.read_text())
        data["meta"]["round_id"] = 99  # another file, of a game that met no chance of the first
        path.write_text(json.dumps(data))
    assert llm_games("import", files, "--db", other)[0] == 0
    code, out, err = llm_games("compare", first, other, "--json")
    assert code == 0, err
    pairs = {row["game"]: row["payoffs"] for row in json.loads(out)["games"] if row["payoffs"]}
    assert {game: of["pairs"] for game, of in pairs.items()} == {"sealed_bid_auction": 2}


def test_a_ghost_takes_a_seat_and_the_imported_player_itself_does_not(folder, tmp_path, llm_games):
    files, run = folder[0], tmp_path / "run.db"
    assert llm_games("import", files / "public_goods", "--db", run)[0] == 0
    game = rulebook("public_goods", preset="gamma_bench_authors", players=5, ratio=2, tokens=20)
    envs = lg.learners(game, 2, opponents=f"ghost:{run}#0")
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    with pytest.raises(BadParameter, match="makes no others; seat a ghost"):
        run_sync(play_table(game, [make_player("imported:x")] * 5, 0))


BROKEN = {  # what stands where, what is put in its place, and what is said of it
    "a field missing": ('"golds"', '"gold_"', "names no game"),
    "no rounds": ("round_records", "rounds", "'round_records' of the file is missing"),
    "no model": ('"model"', '"m"', "'model' of player_0 is missing"),
    "another version": ('"v1"', '"v9"', "version 'v9' of meta is unknown"),
    "another total": ('proposal": ', 'proposal": 1', "of its records"),
    "a move too many": ('"records": [', '"records": [1, ', "has 21 records of 20 rounds"),
    "a move that is none": ('"records": [', '"records": ["x", ', "has 21 records"),
    "no object": ("{", "[", "is no JSON"),
    "a round that is none": ('d_records": [', 'd_records": [1, ', "round 1 is 1, no JSON object"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_with_a_recording_is_named(case, tmp_path, llm_games):
    path, (old, new, message) = tmp_path / "0.json", BROKEN[case]
    path.write_text(json.dumps(sample("divide_dollar", "gpt-4", 0)[0]).replace(old, new))
    code, _, err = llm_games("import", path, "--db", tmp_path / "run.db")
    assert code == 2
    assert message in " ".join(err.split())
    assert "0.json" in err
    assert not (tmp_path / "run.db").exists()


def test_half_a_file_and_games_that_do_not_end_are_named(tmp_path, llm_games):
    data, path = sample("battle_royale", "gpt-4", 0)[0], tmp_path / "0.json"
    path.write_text(json.dumps(data)[:-50])
    assert "half a file" in llm_games("import", path, "--db", tmp_path / "run.db")[2]
    data["round_records"].pop()
    path.write_text(json.dumps(data))
    said = " ".join(llm_games("import", path, "--db", tmp_path / "run.db")[2].split())
    assert "the game is not over: a part is missing" in said


def test_endowments_that_were_drawn_are_those_of_the_file(tmp_path, llm_games):
    data, path = sample("public_goods", "gpt-4", 0)[0], tmp_path / "0.json"
    data["meta"] |= {"token_initialization": "random", "reset": False}
    data["round_records"] = [{}]
    for player, tokens in zip(data["player_data"], (11, 13, 15, 17, 20), strict=True):
        player |= {"tokens": [tokens], "records": [tokens // 2]}
    path.write_text(json.dumps(data))
    assert llm_games("import", path, "--db", tmp_path / "run.db")[0] == 0
    with Records.open_readonly(tmp_path / "run.db") as run:
        assert run.episodes()[0].given == {"endowments": [11, 13, 15, 17, 20]}
        assert replay(run).differences == ()


class Scribe(Policy):
    """Plays at random, and writes its moves down as a user's script would."""

    name = "scribe"
    speaks = True

    def __init__(self, rules):
        self.inside = make_player("random", rules)
        self.moves, self.words = [], []

    def start(self, game, seat, seed):
        return self.inside.start(game, seat, seed)

    def act(self, view, memory):
        decision = Decision("Go low!")
        if not isinstance(view.question, Speech):
            decision, memory = self.inside.act(view, memory)
        self.moves.append(json.loads(view.question.reply(decision.action))[view.question.key])
        self.words.append(f"So I choose {self.moves[-1]}." if len(self.moves) % 2 else "")
        return decision, memory


PLAIN = {  # games that are of no other form: their parameters
    "water_allocation": {},
    "english_auction": {"tie_rule": "lowest_index"},
    "bargaining": {},
    "beauty_contest": {"players": 3, "rounds": 2, "talk": {"turns": 1}},
}


def plain_sample(game, number):
    """A game of random players in the plain form."""
    rules = rulebook(game, **PLAIN[game])
    scribes = [Scribe(rules) for _ in range(rules.players)]
    noise = Noise(number)
    chance = {name: drawn.tolist() for name, drawn in rules.chance(noise).items()}
    chance.pop("lots", None)
    episode = run_sync(play_table(rules, scribes, number, given=chance))
    return {
        "game": game,
        "params": PLAIN[game] | {"players": rules.players},
        "players": [f"model-{seat}" for seat in range(rules.players)],
        "moves": [scribe.moves for scribe in scribes],
        "words": [scribe.words for scribe in scribes],
        "given": chance,
        "payoffs": episode.payoffs.tolist(),
    }


@pytest.mark.parametrize("game", PLAIN)
def test_plain_recordings_of_any_game_become_a_run_with_their_words(game, tmp_path, llm_games):
    samples = [plain_sample(game, number) for number in range(2)]
    for number, sample in enumerate(samples):
        (tmp_path / f"{number}.json").write_text(json.dumps(sample))
    code, _, err = llm_games("import", tmp_path, "--db", tmp_path / "run.db")
    assert code == 0, err
    with Records.open_readonly(tmp_path / "run.db") as records:
        assert replay(records).differences == ()
        rows = records.episodes()
        notes = [[note.content["text"] for note in records.notes(row.id)] for row in rows]
    for texts, sample in zip(notes, samples, strict=True):
        assert sorted(texts) == sorted(text for row in sample["words"] for text in row if text)
    assert llm_games("report", tmp_path / "run.db", "-o", tmp_path / "page.html")[0] == 0
    assert llm_games("view", tmp_path / "run.db", "--export", tmp_path / "pages")[0] == 0


PLAIN_FAULTS = {
    "a key": ({"player": []}, "player"),
    "a game": ({"game": "chess"}, "chess"),
    "seats": ({"players": ["a"]}, "1 players need as many lists of moves"),
    "words": ({"words": [[], []]}, "each of words one text a move"),
    "payoffs": ({"payoffs": [0.0, -1.0]}, "give the params that it was played by"),
    "too few payoffs": ({"payoffs": [0.0]}, "2 players have 1 payoffs"),
    "a parameter": ({"params": {"pie": -3}}, "pie"),
    "chance": ({"given": {"dice": [1]}}, "dice"),
    "a move": ({"moves": [[-5], [5]], "words": None}, "player_0, its move 1"),
}


@pytest.mark.parametrize("fault", PLAIN_FAULTS)
def test_what_is_wrong_with_a_plain_recording_is_named(fault, tmp_path, llm_games):
    wrong, message = PLAIN_FAULTS[fault]
    (tmp_path / "0.json").write_text(json.dumps(plain_sample("bargaining", 0) | wrong))
    code, _, err = llm_games("import", tmp_path / "0.json", "--db", tmp_path / "run.db")
    assert (code, (tmp_path / "run.db").exists()) == (2, False)
    assert message in " ".join(err.split())
