"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"preset": "econ_arena_L", "players": 3, "rounds": 3, "reveal": "bids"},
    {
        "players": 3,
        "assets": (9, 6, 8),
        "mu": 5,
        "sigma": 2,
        "decimals": 0,
        "rounds": 3,
        "reveal": "bids_and_private",
        "entrance_fee": 2,
    },
    {
        "players": 3,
        "assets": (9, 6, 8),
        "mu": 5,
        "sigma": 2,
        "decimals": 0,
        "rounds": 3,
        "price": "first",
        "rule_breaker": "include",
    },
]
QUICK = {"players": 3, "rounds": 4}
FIXED = "120.5"
COARSE = {"players": 3, "decimals": 0}
TRUTHS = [{"players": 3, "tell_prior": True, "rounds": 2}]
PAID = [{"players": 3, "min_valid_bids": 1, "entrance_fee": "1/2", "rounds": 4}]
ONES = [{"players": 2, "assets": 1, "mu": 1, "sigma": 1, "decimals": 1}]
DRAWN = {
    "players": [2, 2, 2, 3],
    "rounds": [1, 1, 2],
    "assets": [2, 3, 5, 8, lambda rng, n: tuple(rng.integers(1, 7, n).tolist())],
    "valuations": [None, lambda rng, n: (tuple(rng.integers(0, 9, n).tolist()),)],
    "mu": [1, 2, 3, 5],
    "sigma": [0, 0.2, 0.5, 1, 2, 3, 5],
    "decimals": [0, 0, 0, 1],
    "entrance_fee": [0, 1],
    "reveal_last": ["all", 0, 1],
}
TOO_LARGE = {"assets", "decimals", "mu", "sigma"}
BAD_PARAMETERS = [
    ({"assets": 0}, "assets must be an integer of at least 1"),
    ({"assets": [5, 6]}, "one for each of 10 players"),
    ({"assets": [5]}, "one for each of 10 players"),
    ({"mu": 0}, "mu must be"),
    ({"mu": 1001}, r"mu must be from 1 to the assets \(1000\), got 1001"),
    ({"sigma": -1}, "sigma must be"),
    ({"sigma": 2000}, "sigma must be from 0 to the assets"),
    ({"sigma": float("nan")}, "sigma must be"),
    ({"entrance_fee": 1001}, "entrance_fee must be from 0 to the assets"),
    ({"entrance_fee": -1}, "entrance_fee must be from 0 to the assets"),
    ({"entrance_fee": 0.001}, "in units of 1/100"),
    ({"decimals": 7}, "decimals must be"),
    ({"min_valid_bids": 3}, "min_valid_bids must be"),
    ({"value_rounding": "up"}, "value_rounding must be"),
    ({"rule_breaker": "void_round"}, "rule_breaker must be"),
    ({"reveal": "all"}, "reveal must be"),
    ({"reveal": "bids", "reveal_last": -1}, "reveal_last must be"),
    ({"told_equal": 1}, "told_equal must be"),
    ({"told_rational": "no"}, "told_rational must be"),
    ({"valuations": [[1] * 10] * 2}, "valuations must be 1 row"),
    ({"valuations": [[-1] * 10]}, "each of the valuations"),
]
