"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"price": "second", "players": 4, "valuation_draw": "random"},
    {"bid_range": "unbounded", "players": 3, "rounds": 3},
]
QUICK = {"players": 3, "rounds": 4}
FIXED = "120"
COARSE = {"players": 3}
TOLD = {"players": [7], "rounds": [3], "price": ["second"]}
TRUTHS = [{"players": 3, "tell_prior": True, "rounds": 2}]
PAID = [{"players": 3, "price": "second", "bid_range": "unbounded"}]
ONES = [{"players": 2, "rounds": 1, "valuation_max": 1, "interval": 1}]
DRAWN = {
    "players": [2, 2, 2, 3],
    "rounds": [1, 1, 2],
    "valuation_min": [0, 0, 1, 4],
    "valuation_max": [1, 2, 3, 5, 8, 12],
    "interval": [1, 1, 2, 3],
    "valuations": [None, lambda rng, n: (tuple(rng.integers(1, 6, n).tolist()),)],
}
TOO_LARGE = {"interval", "valuation_max", "valuation_min"}
