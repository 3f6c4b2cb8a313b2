"""Bidders may be told how private valuations are drawn, if they are drawn."""

import pytest
from playing import each_row

import llm_games
from llm_games.errors import BadParameter

ROW = (1, 2, 3)


@each_row(
    ("name", "given"),
    [
        ("sealed_bid_auction", {"valuations": [ROW], "rounds": 1}),
        ("budget_auction", {"valuations": ROW}),
        ("english_auction", {}),
        ("english_auction", {"values": "private", "private_values": [(1, 2)] * 3,
                             "items": (("A", 0, 0), ("B", 0, 0))}),
    ],
)  # fmt: skip
def test_where_nothing_is_drawn_there_is_no_law(name, given):
    with pytest.raises(BadParameter, match="tell_prior must be False where no private valuations"):
        llm_games.rules(name, players=3, tell_prior=True, **given)
