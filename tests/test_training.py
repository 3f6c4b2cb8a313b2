"""Training scripts: short runs, players that sit down, and all that can break one off."""

import io
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from playing import ALL_DEALS

import llm_games as lg
from llm_games.baselines.best_response import best_response
from llm_games.baselines.players import make_player
from llm_games.baselines.training.harness import LAST, Options, StateReader, curve, evaluate, judge
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import resolve
from llm_games.benchmarks.studies import training_gains as figures
from llm_games.benchmarks.studies.dated import read
from llm_games.errors import BadParameter, DiskFull, TrainingBroke, UnknownName
from llm_games.files import write_whole
from llm_games.registry import rulebook

pytest.importorskip("stable_baselines3")
pytest.importorskip("tensorboard")

from llm_games.baselines.training import dqn, harness, ppo, recurrent_ppo
from llm_games.wrappers.clients.budget import BudgetExceeded
from llm_games.wrappers.sb3 import SB3VecEnv

ROOT = Path(__file__).parents[1]
SHORT = {"copies": 8, "episodes": 12, "seed": 3}


def options(kind, folder, **more):
    given = {"opponents": ["random"], "param": ["players=3", "rounds=2"], "rollout": 4, **SHORT}
    return kind(**{"game": "public_goods", "folder": folder, **given, **more})


@pytest.fixture(autouse=True)
def _judged_seldom(monkeypatch):
    """Judge a training four times; leave no handler of signals behind."""
    monkeypatch.setattr(harness, "POINTS", 4)
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


# -- what a script does ----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "kind", "game", "param"),
    [
        (ppo, ppo.PPOOptions, "sealed_bid_auction", ["players=3", "rounds=2"]),
        (ppo, ppo.PPOOptions, "battle_royale", ["players=3"]),  # with masks
        (dqn, dqn.DQNOptions, "battle_royale", ["players=3"]),
        (recurrent_ppo, recurrent_ppo.RecurrentOptions, "el_farol_bar", ["players=3", "rounds=3"]),
    ],
)
def test_a_script_trains_a_player(script, kind, game, param, tmp_path, capsys):
    given = options(kind, tmp_path / "a", game=game, param=param, steps=320)
    found = script.train(given)
    said = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert float(said["payoff"]) == pytest.approx(found.payoff, rel=1e-3, abs=1e-3)
    logged = curve(tmp_path / "a")
    assert logged["payoff"][0, 0] == 0
    assert logged["payoff"][0, -1] == 320
    assert {"regret", "nash_conv"} <= logged.keys()
    assert any(name.startswith("train/") for name in logged)
    assert [*(tmp_path / "a").glob("events.out.tfevents.*")]
    assert said["player"] == f"sb3:{tmp_path / 'a' / 'player.zip'}"
    parameters = {name: int(value) for name, value in (pair.split("=") for pair in param)}
    players = [lg.player(name) for name in (said["player"], "random", "random")]
    episode = lg.play(game, players, **parameters)
    assert len(episode.payoffs) == 3


@pytest.mark.parametrize("more", [{}, {"spread": True}])
def test_the_player_is_the_learner_that_was_judged(more, tmp_path):
    given = options(ppo.PPOOptions, tmp_path / "a", steps=32, seat="1", **more)
    found = ppo.train(given)
    rules = given.table().rules
    saved = make_player(f"sb3:{tmp_path / 'a' / 'player.zip'}", rules)
    seeds = range(harness.LAST, harness.LAST + 60)
    again = evaluate(rules, ["random", saved, "random"], seeds)
    np.testing.assert_array_equal(again[1], found.payoffs)


DILEMMA = "matrix_game", ["continuation=9/10"], "tit_for_tat", {"copies": 128, "entropy": 0.1}
PEOPLE = "bargaining", [], "people", {"copies": 256, "rollout": 8, "entropy": 0.05}
OFFERS = ["scenario=[[1, 4, 1], [4, 1, 2], [0, 2, 2]]"]
CONCEDER = "deal_or_no_deal", OFFERS, "conceder:1", {"copies": 128, "rollout": 10, "entropy": 0.2}


@pytest.mark.long
@pytest.mark.parametrize(
    ("game", "param", "opponent", "more"),
    [DILEMMA, PEOPLE, CONCEDER],
    ids=["dilemma", "people", "conceder"],
)
def test_ppo_finds_the_best_reply(game, param, opponent, more, tmp_path, monkeypatch):
    """Both play the same games, so that what chance brings to them is the same."""
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path / "cache"))
    more = {"rollout": 20, "rate": 3e-3, "gamma": 1.0, "episodes": 400, "seat": "0"} | more
    said = {"game": game, "param": param, "opponents": [opponent], "steps": 60_000}
    given = options(ppo.PPOOptions, tmp_path / "a", **said, **more)
    found, table = ppo.train(given), given.table()
    reply = best_response(table.rules, 0, opponent)
    assert reply.exact
    best = judge(table, reply.policy, len(found.payoffs), LAST)
    assert found.payoffs.mean() >= 0.97 * best.payoffs.mean()


WIDE = {"copies": 256, "rollout": 10, "rate": 2e-3, "gamma": 1.0, "entropy": 0.1, "width": 128}


@pytest.mark.long
def test_ppo_gets_most_of_a_conceder_over_all_scenarios(tmp_path):
    said = {"game": "deal_or_no_deal", "param": [], "opponents": ["conceder:1"], "seat": "0"}
    more = {"steps": 300_000, "episodes": 1000}
    found = ppo.train(options(ppo.PPOOptions, tmp_path / "a", **said, **WIDE, **more))
    assert found.payoff >= 0.85 * ALL_DEALS


@pytest.mark.long
def test_ppo_learns_to_give_nothing(tmp_path):
    steps = {"steps": 4000, "copies": 32, "rate": 3e-3, "opponents": ["fixed:10"]}
    found = ppo.train(options(ppo.PPOOptions, tmp_path / "a", **steps))
    assert found.regret < 0.1


def test_the_file_of_the_table_is_played_as_it_is(tmp_path, capsys):
    more = {"steps": 32, "seat": "1", "opponents": ["rational", "fixed:5"]}
    ppo.train(options(ppo.PPOOptions, tmp_path / "a", **more))
    file = re.search(r"llm-games run (\S+)", capsys.readouterr().out)[1]
    (game,) = resolve(parse(tomllib.loads(Path(file).read_text("utf-8")), file), file).games
    player = f"sb3:{tmp_path / 'a' / 'player.zip'}"
    assert [seat.player for seat in game.seats] == ["rational", player, "fixed:5"]
    assert game.order == "fixed"
    run = lg.run(file, tmp_path / "run.db", episodes=2)
    assert len(run.rows("episodes")) == 2


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"game": "public_good"}, UnknownName, "did you mean 'public_goods'"),
        ({"opponents": ["ratoinal"]}, UnknownName, "did you mean 'rational'"),
        ({"opponents": ["rational", "random", "random"]}, BadParameter, "one policy or 2"),
        ({"param": ["rounds"]}, BadParameter, "--param rounds: write NAME=VALUE"),
        ({"param": ["rounds=0"]}, BadParameter, "rounds must be"),
        ({"param": ["players=1"]}, BadParameter, "players"),
        ({"seat": "3"}, BadParameter, "at least 0 and at most 2, got 3"),
        ({"seat": "left"}, BadParameter, "rotate"),
        ({"client": ["samples=4"]}, BadParameter, "none does"),
        ({"opponents": ["tiny"], "client": ["sample=4"]}, UnknownName, "samples"),
        ({"opponents": ["tiny"], "set": ["memori=none"]}, UnknownName, "memory"),
    ],
)
def test_wrong_options_are_said_before_anything_is_made(wrong, error, says, tmp_path):
    given = options(ppo.PPOOptions, tmp_path / "a", **wrong)
    with pytest.raises(error, match=re.escape(says)):
        ppo.train(given)
    assert not (tmp_path / "a").exists()


def test_dqn_takes_indexes_only(tmp_path):
    with pytest.raises(BadParameter, match="--actions index, got 'unit'"):
        dqn.train(options(dqn.DQNOptions, tmp_path / "a", actions="unit"))


@pytest.mark.parametrize("kind", [ppo.PPOOptions, dqn.DQNOptions, recurrent_ppo.RecurrentOptions])
def test_a_command_has_every_option_of_its_script(kind, monkeypatch):
    given = []

    def train(options):
        given.append(options)

    words = "x public_goods --opponents a --opponents b --resume --copies=2"
    monkeypatch.setattr(sys, "argv", words.split())
    with pytest.raises(SystemExit) as ended:
        harness.command(train, kind)
    assert ended.value.code == 0
    assert given == [kind(game="public_goods", opponents=["a", "b"], resume=True, copies=2)]


# -- measures --------------------------------------------------------------------------------------


def test_seats_of_equal_players_get_the_same_in_games_of_equal_chance():
    rules = rulebook("public_goods", players=3, rounds=2)
    seeds = [4, 5, 4]
    paid = evaluate(rules, ["random", "rational", "fixed:3"], seeds)
    assert paid.shape == (3, 3)
    np.testing.assert_array_equal(paid[:, 0], paid[:, 2])
    players = [lg.player(name) for name in ("random", "rational", "fixed:3")]
    one = lg.play("public_goods", players, 5, players=3, rounds=2)
    assert paid[:, 1].tolist() == list(one.payoffs)


def test_who_plays_the_equilibrium_has_no_regret_and_cannot_be_exploited():
    table = Options(game="public_goods", param=["players=3", "rounds=2"]).table()
    at_rest = judge(table, make_player("rational", table.rules), 6)
    assert (at_rest.regret, at_rest.nash_conv, at_rest.exploitability) == (0, 0, 0)
    giving = judge(table, make_player("fixed:10", table.rules), 6)
    assert giving.regret == giving.nash_conv > 0
    assert giving.exploitability > 0
    assert giving.payoff < at_rest.payoff


# -- broken off ------------------------------------------------------------------------------------


def stop_at(monkeypatch, step):
    own, pressed = harness.Training.judge, []

    def judge(run, *args, **more):
        if run.step >= step and not pressed:
            pressed.append(run.step)
            signal.raise_signal(signal.SIGINT)
        return own(run, *args, **more)

    monkeypatch.setattr(harness.Training, "judge", judge)
    return pressed


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "kind", "more"),
    [
        (ppo, ppo.PPOOptions, {}),
        (ppo, ppo.PPOOptions, {"spread": True}),
        (dqn, dqn.DQNOptions, {}),
        (recurrent_ppo, recurrent_ppo.RecurrentOptions, {}),
    ],
)
def test_a_training_that_goes_on_is_the_one_that_never_stopped(
    script, kind, more, tmp_path, monkeypatch
):
    given = {"steps": 320, "param": ["players=3", "rounds=3"], **more}
    script.train(options(kind, tmp_path / "whole", **given))
    pressed = stop_at(monkeypatch, 96)
    with pytest.raises(KeyboardInterrupt) as stopped:
        script.train(options(kind, tmp_path / "parts", **given))
    assert 96 <= pressed[0] < 320
    assert f"saved at step {pressed[0]}; go on: python -m" in stopped.value.__notes__[0]
    script.train(options(kind, tmp_path / "parts", resume=True, **given))
    whole, parts = (curve(tmp_path / name) for name in ("whole", "parts"))
    rows = [rows_of(tmp_path / name) for name in ("whole", "parts")]
    assert rows[0] == rows[1]
    whole = {name: values for name, values in whole.items() if name != "train/n_updates"}
    for name, values in whole.items():
        np.testing.assert_array_equal(values, parts[name], err_msg=name)


def test_a_state_of_an_earlier_version_goes_on_as_one_of_today(tmp_path):
    given = {"opponents": ["rational", "mix:random|rational"]}
    ppo.train(options(ppo.PPOOptions, tmp_path / "old", steps=32, **given))
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    contents = pickle.loads((tmp_path / "new" / "state").read_bytes())
    contents["scaled"].set_venv(SB3VecEnv(contents["games"]))
    state = pickle.dumps(contents, 0)
    for new, old in (
        ("cllm_games.table_batch\nTables", "cllm_games.tables\nTables"),
        ("cllm_games.wrappers.player_mixture\nPlayerM", "cllm_games.wrappers.mixture\nM"),
        ("rules\nRuleMemories\n", "rules\nMemories\n"),
        ("V_indexes\n", "V_at\n"),
        ("V_is_seeded\n", "V_begun\n"),
    ):
        assert new.encode() in state
        state = state.replace(new.encode(), old.encode())
    (tmp_path / "old" / "state").write_bytes(state)
    for folder in ("old", "new"):
        ppo.train(options(ppo.PPOOptions, tmp_path / folder, steps=64, resume=True, **given))
    old, new = ((tmp_path / name / "curve.csv").read_bytes() for name in ("old", "new"))
    assert old == new


OLD_STATES = {
    "diners_dilemma": ("DinersDilemmaState", "dishes"),
    "divide_dollar": ("DivideDollarState", "bids"),
    "el_farol_bar": ("ElFarolBarState", "decisions"),
}


@pytest.mark.parametrize("name", OLD_STATES)
def test_states_that_had_classes_of_their_own_are_read(name):
    (old, field), state = OLD_STATES[name], rulebook(name).reset(1, (2,))
    text = pickle.dumps(state, 0).replace(
        b"cllm_games.rounds\nLastActions\n", f"cllm_games.games.{name}.rules\n{old}\n".encode()
    )
    text = text.replace(b"Vactions\n", f"V{field}\n".encode())
    assert old.encode() in text
    assert field.encode() in text
    read = StateReader(io.BytesIO(text)).load()
    assert (type(read), read.actions.tolist()) == (type(state), state.actions.tolist())


def rows_of(folder):
    return [row.rpartition(",")[0] for row in (folder / "curve.csv").read_text().splitlines()]


def test_rows_beyond_the_state_that_was_kept_are_no_part_of_the_curve(tmp_path):
    """As of a training that was killed between two times at which it is kept."""
    folder = tmp_path / "a"
    ppo.train(options(ppo.PPOOptions, folder, steps=32))
    before = rows_of(folder)
    with (folder / "curve.csv").open("a") as file:
        file.write("48,payoff,1.0\n")
    ppo.train(options(ppo.PPOOptions, folder, steps=32, resume=True))
    assert rows_of(folder) == before


@pytest.mark.long
def test_ctrl_c_in_a_process_keeps_the_training(tmp_path):
    folder = tmp_path / "a"
    words = ["public_goods", "--param", "players=3", "--copies", "8", "--steps", "1000000"]
    words += ["--episodes", "4", "--folder", str(folder), "--seed", "3"]
    command = [sys.executable, "-m", "llm_games.baselines.training.ppo", *words]
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT)
    try:
        end = time.monotonic() + 120
        while not (folder / "state").exists() and process.poll() is None:
            assert time.monotonic() < end, "it never began"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "stopping where the state is whole" in said
    step, way = re.search(r"saved at step (\d+); go on: (.+ --resume)\)", said).groups()
    assert str(folder) in way
    assert not [*folder.glob(".*.part")]
    given = ppo.PPOOptions(
        game="public_goods", param=["players=3"], copies=8, episodes=4, seed=3, folder=folder,
        steps=int(step) + 160, resume=True,
    )  # fmt: skip
    ppo.train(given)
    assert curve(folder)["payoff"][0, -1] >= int(step) + 160


def test_a_folder_is_of_one_training(tmp_path):
    with pytest.raises(BadParameter, match="no training to go on with"):
        ppo.train(options(ppo.PPOOptions, tmp_path / "a", resume=True))
    ppo.train(options(ppo.PPOOptions, tmp_path / "a", steps=32))
    with pytest.raises(BadParameter, match="has a training already"):
        ppo.train(options(ppo.PPOOptions, tmp_path / "a", steps=32))
    with pytest.raises(BadParameter, match=r"with seed 3, not 4"):
        ppo.train(options(ppo.PPOOptions, tmp_path / "a", seed=4, resume=True))
    with pytest.raises(BadParameter, match=r"with method 'ppo', not 'dqn'"):
        dqn.train(options(dqn.DQNOptions, tmp_path / "a", resume=True))
    (tmp_path / "a" / "state").write_bytes(b"torn")
    with pytest.raises(BadParameter, match="cannot be read"):
        ppo.train(options(ppo.PPOOptions, tmp_path / "a", resume=True))


def test_a_training_that_is_of_other_rules_or_cannot_be_read_is_left_alone(tmp_path):
    folder = tmp_path / "a"
    ppo.train(options(ppo.PPOOptions, folder, steps=32))
    about, again = folder / "options.json", options(ppo.PPOOptions, folder, steps=64, resume=True)
    said = about.read_text("utf-8")
    edition = rulebook("public_goods").edition
    about.write_text(said.replace(f'"edition": {edition}', '"edition": 0'), "utf-8")
    with pytest.raises(BadParameter, match=f"with edition 0, not {edition}"):
        ppo.train(again)
    for torn in (said[:20], "[]"):
        about.write_text(torn, "utf-8")
        with pytest.raises(BadParameter, match=r"options\.json cannot be read"):
            ppo.train(again)
    about.unlink()
    with pytest.raises(BadParameter, match=r"options\.json cannot be read"):
        ppo.train(again)
    about.write_text(said, "utf-8")
    ppo.train(again)


def test_a_curve_that_was_torn_goes_on_in_whole_rows(tmp_path):
    folder = tmp_path / "a"
    ppo.train(options(ppo.PPOOptions, folder, steps=32))
    with (folder / "curve.csv").open("a") as file:
        file.write("64,payo")
    ppo.train(options(ppo.PPOOptions, folder, steps=64, resume=True))
    assert curve(folder)["payoff"][0].tolist() == [0, 32, 64]
    (folder / "state").unlink()
    ppo.train(options(ppo.PPOOptions, folder, steps=32))  # another one, in the place of the first
    assert curve(folder)["payoff"][0].tolist() == [0, 32]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(BadParameter, match=r"b cannot be written to \(.+\): name another --folder"):
        ppo.train(options(ppo.PPOOptions, tmp_path / "a" / "b"))


@pytest.mark.parametrize(
    ("script", "kind"), [(ppo, ppo.PPOOptions), (recurrent_ppo, recurrent_ppo.RecurrentOptions)]
)
def test_no_decision_is_learned_from_alone(script, kind, tmp_path):
    with pytest.raises(BadParameter, match="give --copies or --rollout of 2 or more"):
        script.train(options(kind, tmp_path / "a", copies=1, rollout=1))
    small = options(kind, tmp_path / "a", copies=3, rollout=3, steps=9)
    assert small.settings()["batch_size"] == 3  # in parts of 2 and the rest
    assert np.isfinite(script.train(small).payoff)


@pytest.fixture
def small_files():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_file(small_files, tmp_path):
    write_whole(tmp_path / "a", b"old")
    with pytest.raises(DiskFull, match=re.escape(f"no room is left in {tmp_path}")):
        write_whole(tmp_path / "a", bytes(200_000))
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.long
def test_a_training_on_a_full_disk_loses_nothing(tmp_path, request):
    folder = tmp_path / "a"
    ppo.train(options(ppo.PPOOptions, folder, steps=64))
    before = (folder / "state").read_bytes(), (folder / "player.zip").read_bytes()
    request.getfixturevalue("small_files")
    with pytest.raises(DiskFull, match=re.escape(str(folder))) as full:
        ppo.train(options(ppo.PPOOptions, folder, steps=128, resume=True))
    assert "saved at step 64; go on" in full.value.__notes__[-1]
    assert ((folder / "state").read_bytes(), (folder / "player.zip").read_bytes()) == before
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    ppo.train(options(ppo.PPOOptions, folder, steps=128, resume=True))
    assert curve(folder)["payoff"][0, -1] == 128


@pytest.mark.long
@pytest.mark.parametrize(("script", "kind"), [(ppo, ppo.PPOOptions), (dqn, dqn.DQNOptions)])
def test_what_is_no_number_ends_a_training_and_says_where(script, kind, tmp_path):
    folder = tmp_path / "a"
    with pytest.raises(TrainingBroke, match=r"at step \d+; it was last sound at step 0, ") as broke:
        script.train(options(kind, folder, steps=3200, rate=1e30))
    assert "smaller --rate" in str(broke.value)
    assert np.isfinite(curve(folder)["payoff"]).all()
    assert make_player(f"sb3:{folder / 'player.zip'}", rulebook("public_goods", players=3))
    script.train(options(kind, folder, steps=96, rate=1e-4, resume=True))
    assert curve(folder)["payoff"][0, -1] == 96


@pytest.mark.long
def test_a_budget_that_ends_is_said_and_kept(tmp_path):
    folder = tmp_path / "a"

    def train(calls, steps, resume):
        client = ["samples=1", f"budget={{calls={calls}}}", f"cache={str(tmp_path / 'r.db')!r}"]
        return ppo.train(options(
            ppo.PPOOptions, folder, opponents=["tiny"], client=client, set=["memory=none"],
            steps=steps, resume=resume, episodes=3, copies=4, param=["players=2", "rounds=2"],
        ))  # fmt: skip

    with pytest.raises(BudgetExceeded) as ended:
        train(5, 320, False)
    assert "go on: python -m llm_games.baselines.training.ppo" in ended.value.__notes__[-1]
    with pytest.raises(BudgetExceeded, match="calls"):  # what was spent counts
        train(5, 320, True)
    train(1000, 32, True)
    logged = curve(folder)
    assert 5 <= logged["opponents/calls"][1, -1] <= 1000
    assert logged["payoff"][0, -1] >= 32


# -- figures ---------------------------------------------------------------------------------------


def row(**more):
    given = dict.fromkeys(figures.TrainingResult._fields, 0.0) | {
        "experiment": "a",
        "learner": "ppo",
    }
    texts = dict.fromkeys(("game", "parameters", "opponents", "day", "versions"), "x")
    return figures.TrainingResult(**given | texts | {"seed": 1, "steps": 5} | more)


def test_rows_take_the_place_of_those_of_the_same_training(tmp_path):
    file = tmp_path / "training.csv"
    figures.record([row(seed=2), row(seed=1, value=float("nan"))], file)
    figures.record([row(seed=2, payoff=3.5)], file)
    first, second = read(figures.TrainingResult, file)
    assert (first.seed, second.seed, second.payoff) == (1, 2, 3.5)
    assert np.isnan(first.value)


def test_one_seed_has_no_interval_and_several_have():
    one = row(payoff=3.0, value=4.0, share=0.75)
    assert "| 4 | 3 | 75.0% | 75.0% |" in figures.text([one])
    two = figures.text([one, row(seed=2, payoff=5.0, value=4.0, share=1.25)])
    assert "| 4 [-8.7062 to 16.706] | 100.0% [-217.7% to 417.7%] | 75.0%, 125.0% |" in two


def test_shares_are_of_the_best_response():
    found = read(figures.TrainingResult, figures.FILE)
    assert found
    assert all(row.share == pytest.approx(row.payoff / row.value, abs=1e-4) for row in found)
