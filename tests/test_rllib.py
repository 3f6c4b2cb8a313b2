"""RLlib on a cluster of two nodes; it is not installed with the others, since it pins Gymnasium."""

import pytest

pytest.importorskip("ray.rllib", reason="RLlib is installed apart: pip install 'llm-games[rllib]'")

from llm_games.baselines.players import make_player
from llm_games.baselines.training import rllib
from llm_games.baselines.training.harness import curve
from llm_games.errors import BadParameter

GAMES = {
    "numbers": ("public_goods", "index", "players=3"),
    "masks": ("battle_royale", "index", "players=3"),
    "shares": ("sealed_bid_auction", "unit", "players=3"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", GAMES)
def test_both_nodes_play_and_what_is_learned_sits_down_elsewhere(case, tmp_path, capfd):
    game, actions, param = GAMES[case]
    told = rllib.RLlibSettings(
        game=game, actions=actions, param=[param], copies=4, rollout=8, steps=64, episodes=5,
        folder=tmp_path,
    )  # fmt: skip
    rllib.train(told)
    assert "tables are played on 2 nodes: " in capfd.readouterr().err
    steps = curve(tmp_path)["payoff"][0]  # RLlib plays some more where episodes end
    assert steps[0] == 0
    assert ((steps[1:] >= [32, 64]) & (steps[1:] < [40, 72])).all()
    make_player(f"torch:{tmp_path / 'player.safetensors'}", told.table().rules)
    rllib.train(rllib.RLlibSettings(**{**vars(told), "steps": 96, "resume": True}))
    assert 96 <= curve(tmp_path)["payoff"][0, -1] < 112
    with pytest.raises(BadParameter, match="was trained for"):
        make_player(f"torch:{tmp_path / 'player.safetensors'}", "water_allocation")
