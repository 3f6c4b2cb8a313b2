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
