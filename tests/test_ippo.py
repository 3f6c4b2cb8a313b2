"""Networks of torch alone: they learn in all seats at once, and sit down at other tables."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import llm_games as lg
from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.training import ippo
from llm_games.baselines.training.harness import Training, curve
from llm_games.errors import BadParameter, TrainingBroke
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.learned import LearnedPolicy, Trained
from llm_games.wrappers.torch_player import load_network, network, save_network


@pytest.fixture(autouse=True)
def _few_games(monkeypatch):
    end = Training.end
    monkeypatch.setattr(Training, "end", lambda *of, **more: end(*of, games=10, **more))


def untrained(game, actions="index", seed=1):
    torch.manual_seed(seed)
    model = network(game, actions, hidden=(8,))
    with torch.no_grad():  # so that it does not do the same everywhere
        for weights in model.actor.parameters():
            weights.normal_()
    return model


def kept(path, actions="index", name="public_goods", **parameters):
    game = rulebook(name, **parameters)
    return save_network(untrained(game, actions), game, Trained.of(game, actions, True), path)


CASES = {
    "numbers": ("public_goods", "index", {"players": 3, "rounds": 4}),
    "shares": ("sealed_bid_auction", "unit", {"players": 3, "rounds": 4}),
    "masks": ("battle_royale", "index", {"players": 4}),
    "plans": ("pirate_game", "index", {"players": 3}),
}


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_a_saved_network_plays_as_it_did_one_by_one_and_in_a_batch(case, deterministic, tmp_path):
    name, actions, parameters = CASES[case]
    game = rulebook(name, **parameters)
    model, trained = untrained(game, actions), Trained.of(game, actions, True)
    path = save_network(model, game, trained, tmp_path / "net")
    assert path.name == "net.safetensors"
    before = LearnedPolicy(model, trained=trained, deterministic=deterministic)
    after = lg.player(f"torch:{path}", deterministic=deterministic)
    played = []
    for policy in (before, after):
        tables = Tables(game, 5)
        seats = BatchSeats(tables, [policy], np.zeros((game.players, 5), np.int64))
        tables.reset([7 + table for table in range(5)])
        seats.start(np.ones(5, np.bool_))
        moves = []
        while not tables.state.over.all():
            moves.append(seats.ask_now(tables.ready().turn))
            tables.step(moves[-1])
        played.append(np.array(moves))
    assert (played[0] == played[1]).all()
    alone = lg.play(game, [after] * game.players, seed=9)
    steps = np.array([step.outcome.record["actions"] for step in alone.steps])
    asked = steps != MISSING
    assert asked.any()
    assert (steps == played[0][: len(steps), :, 2])[asked].all()


def test_chance_is_the_seats_own_unless_it_is_deterministic(tmp_path):
    path = kept(tmp_path / "net", players=3, rounds=4)
    for deterministic in (True, False):
        player = lg.player(f"torch:{path}", deterministic=deterministic)
        games = [
            lg.play("public_goods", [player] * 3, seed=seed, players=3, rounds=4)
            for seed in (1, 1, 2)
        ]
        acts = [[step.outcome.record["actions"].tolist() for step in g.steps] for g in games]
        assert acts[0] == acts[1]
        assert (acts[0] == acts[2]) == deterministic
    likely = player.model.chances(torch.zeros(1, player.model.observation_space.shape[0])).probs
    law = likely.detach().numpy()
    noise = Noise(np.arange(2000).astype(np.uint64)).of(0, 0)
    drawn = noise.choice(np.repeat(law, 2000, axis=0))
    assert abs(np.bincount(drawn, minlength=21) / 2000 - law[0]).max() < 0.05


WRONG = {
    "another game": ("divide_dollar", {"players": 3, "rounds": 4}),
    "more seats": ("public_goods", {"players": 4, "rounds": 4}),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused_at_tables_that_it_was_not_trained_for(case, tmp_path):
    path = kept(tmp_path / "net", players=3, rounds=4)
    name, parameters = WRONG[case]
    with pytest.raises(BadParameter, match=r"was trained for public_goods with 3 players, not for"):
        lg.player(f"torch:{path}", rulebook(name, **parameters))


def changed(path, **said):
    weights = load_file(path)
    about = json.loads(metadata(path)["player"])
    about["trained"] |= {key: said.pop(key) for key in [*said] if key in about["trained"]}
    save_file(weights, path, {"player": json.dumps(about | said)})


def metadata(path):
    size = int.from_bytes(path.read_bytes()[:8], "little")
    return json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]


def test_other_editions_and_versions_are_refused(tmp_path):
    path, game = kept(tmp_path / "net", players=3), rulebook("public_goods", players=3)
    changed(path, edition=99)
    with pytest.raises(BadParameter, match="edition 99 of public_goods's rules, which are now"):
        load_network(path).start(game, 0, 0)
    path = kept(tmp_path / "net", players=3)
    changed(path, format=99, package="99.0")
    with pytest.raises(BadParameter, match=r"was saved by llm-games 99\.0: install that, or later"):
        load_network(path)


def test_files_that_are_no_players_say_so(tmp_path):
    with pytest.raises(BadParameter, match="there is no file"):
        lg.player(f"torch:{tmp_path / 'none'}")
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"not one")
    with pytest.raises(BadParameter, match="cannot be read"):
        lg.player(f"torch:{other}")
    save_file({"a": torch.zeros(1)}, other)
    with pytest.raises(BadParameter, match="says not what it was trained for"):
        lg.player(f"torch:{other}")
    path = kept(tmp_path / "net", players=3)
    changed(path, hidden=[8, 8])
    with pytest.raises(BadParameter, match="what it holds is no player"):
        lg.player(f"torch:{path}")


def test_weights_that_are_no_numbers_are_not_saved(tmp_path):
    path = kept(tmp_path / "net", players=3)
    before, game = path.read_bytes(), rulebook("public_goods", players=3)
    model = untrained(game)
    with torch.no_grad():
        model.actor[0].weight[0, 0] = torch.nan
    with pytest.raises(BadParameter, match="weights that are no numbers"):
        save_network(model, game, Trained.of(game, "index", True), path)
    assert path.read_bytes() == before


def test_only_numbers_and_shares_are_learned():
    with pytest.raises(BadParameter, match='take "index" or "unit"'):
        network(rulebook("pirate_game", players=3), "rules")


# -- a training ------------------------------------------------------------------------------------


def settings(folder, **given):
    usual = {"game": "el_farol_bar", "param": ["players=3", "rounds=1"], "gamma": 0.0}
    return ippo.PPOSettings(**{**usual, "steps": 640, "episodes": 10, "folder": folder, **given})


def weights(folder):
    return load_file(folder / "player.safetensors")


def same(one, other):
    return all((one[name] == other[name]).all() for name in one)


@pytest.mark.long
def test_seats_learn_to_be_near_an_equilibrium_and_each_for_itself(tmp_path, capsys):
    ippo.train(
        settings(tmp_path, steps=5000, rate=5e-3, exact=True, rollout=4, batches=2, entropy=0.0)
    )
    found = curve(tmp_path)
    conv = found["tree/nash_conv"][1]
    assert conv[0] > 2  # of 5 that each seat could gain
    assert conv[-1] < conv[0] / 4
    asked, *lines = capsys.readouterr().out.splitlines()  # first what was asked for
    assert asked.split() == ["tree/nash_conv", f"{conv[-1]:.5g}"]
    among = [line.split()[0] for line in lines].index("among")
    assert lines[among].split()[1:] == settings(tmp_path).opponents
    assert all(line.startswith("self/") for line in lines[:among])
    assert lines[among + 1].split()[0] == "payoff"
    assert {"payoff", "self/nash_conv", "self/exploitability", "train/loss"} <= {*found}
    kept = weights(tmp_path)
    assert not same({"": kept["0.actor.0.weight"]}, {"": kept["1.actor.0.weight"]})
    player = lg.player(f"torch:{tmp_path / 'player.safetensors'}")
    assert [own.deterministic for own in player.players] == [False] * 3
    lg.play("el_farol_bar", [player] * 3, players=3, rounds=1)


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"shared": True}])
def test_a_training_that_was_stopped_goes_on_as_if_it_was_not(given, tmp_path, monkeypatch):
    told = {"copies": 8, "rollout": 10, "steps": 320, **given}
    ippo.train(settings(tmp_path / "whole", **told))
    learned = ippo.learned

    def stops(run, team):
        loss = learned(run, team)
        run.stopping = run.step == 160
        return loss

    monkeypatch.setattr(ippo, "learned", stops)
    with pytest.raises(KeyboardInterrupt):
        ippo.train(settings(tmp_path / "parts", **told))
    monkeypatch.setattr(ippo, "learned", learned)
    ippo.train(settings(tmp_path / "parts", **told, resume=True))
    one, other = (weights(tmp_path / part) for part in ("whole", "parts"))
    assert len(one) == (12 if given else 36)
    assert same(one, other)
    one, other = ((tmp_path / part / "curve.csv").read_text() for part in ("whole", "parts"))
    assert one == other


CODECS = {
    "masks and turns": ("battle_royale", "index", ["players=3"]),
    "plans": ("pirate_game", "index", ["players=3"]),
    "shares": ("sealed_bid_auction", "unit", ["players=3", "rounds=2"]),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CODECS)
def test_seats_learn_in_games_of_all_kinds(case, tmp_path):
    game, actions, param = CODECS[case]
    told = {"game": game, "actions": actions, "param": param, "copies": 4, "steps": 80}
    before = settings(tmp_path, **told, episodes=2)
    found = ippo.train(before)
    assert found.payoffs.shape == (10,)
    player = lg.player(f"torch:{tmp_path / 'player.safetensors'}", before.table().rules)
    assert player.players[2].deterministic == (actions == "unit")


def test_weights_that_are_no_numbers_stop_it_and_the_last_state_stays(tmp_path, monkeypatch):
    learned = ippo.update

    def breaks(own, rows, gains, told):
        loss = learned(own, rows, gains, told)
        with torch.no_grad():
            own.net.critic[0].weight[0, 0] = torch.nan
        return loss

    monkeypatch.setattr(ippo, "update", breaks)
    with pytest.raises(TrainingBroke, match=r"critic.0.weight is no number at step 0; it was last"):
        ippo.train(settings(tmp_path, copies=4, steps=160))
    assert all(value.isfinite().all() for value in weights(tmp_path).values())
    monkeypatch.setattr(ippo, "update", learned)
    ippo.train(settings(tmp_path, copies=4, steps=160, resume=True))


def test_a_state_that_cannot_be_read_is_said(tmp_path):
    ippo.train(settings(tmp_path, copies=4, steps=80))
    (tmp_path / "state").write_bytes(b"torn")
    with pytest.raises(BadParameter, match="state cannot be read"):
        ippo.train(settings(tmp_path, copies=4, steps=160, resume=True))


def test_of_several_networks_each_plays_its_seat(tmp_path):
    game = rulebook("public_goods", players=3, rounds=4)
    models = [untrained(game, seed=seed) for seed in (1, 2, 3)]
    trained = Trained.of(game, "index", True)
    player = load_network(save_network(models, game, trained, tmp_path / "net"))
    alone = [LearnedPolicy(model, trained=trained) for model in models]
    seen = [lg.play(game, who, seed=1).payoffs.tolist() for who in ([player] * 3, alone)]
    assert seen[0] == seen[1]
    sits = np.zeros((3, 4), np.int64)
    batch = [
        sum(o.rewards for _, o in play_batch(game, who, sits if len(who) == 1 else
            np.tile([[0], [1], [2]], 4), [1, 2, 3, 4]))
        for who in ([player], alone)
    ]  # fmt: skip
    assert (batch[0] == batch[1]).all()
    with pytest.raises(BadParameter, match="has 3 players, one for each seat, and here are 4"):
        player.start(rulebook("public_goods", players=4), 0, 0)


def test_what_a_seat_is_paid_later_counts_until_it_is_out():
    steps, zero = 3, torch.zeros(3, 1, 1)
    rewards, goes_on = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 0.0, 1.0])
    rows = ippo.RolloutBuffer(
        *[zero] * 4, zero, rewards.view(steps, 1, 1), zero, zero, goes_on.view(3, 1, 1)
    )
    found = ippo.advantages(rows, torch.full((1, 1), 8.0), gamma=0.5, trace=1.0)
    assert found.flatten().tolist() == [1 + 0.5 * 2, 2, 4 + 0.5 * 8]


def test_rewards_are_scaled_by_the_deviation_of_returns():
    noise, scale = np.random.default_rng(1), ippo.Rewards((2, 50), gamma=0.0)
    for _ in range(200):
        paid = noise.normal(3, 40, (2, 50))
        scaled = scale.scaled(paid, np.zeros((2, 50), bool))
    assert np.allclose(scaled * 40, paid, rtol=0.05)
