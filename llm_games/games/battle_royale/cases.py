"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"players": 3, "base_hit_rate": 50, "interval": 20},
    {"players": 4, "bad_target": "wasted_shot", "max_shots": 5},
]
QUICK = {"players": 4, "max_shots": 12}
FIXED = "strongest"
COARSE = {"players": 3}
TOLD = {
    "players": [7],
    "base_hit_rate": [40],
    "interval": [4],
    "announce_cap": [False],
    "max_shots": [13],
    "self_target": ["allowed"],
}
TRUTHS = [{"announce_cap": True, "players": 3}, {"players": 3, "hit_rates": (10, 20, 30)}]
PAID = [{"players": 4, "cap_outcome": "share", "max_shots": 3}, {"players": 3, "max_shots": None}]
ONES = [{"players": 2, "max_shots": 1, "announce_cap": True, "cap_outcome": "share"}]
DRAWN = {
    "base_hit_rate": [0, 1, 20, 35, 50, 80, 100],
    "interval": [-20, -5, 0, 5, 10, 30],
    "hit_rates": [lambda rng, n: tuple(rng.integers(0, 101, n).tolist())],
    "max_shots": [1, 2, 3, 4, 5, 6, 7, 9, None],
}
BAD_PARAMETERS = [
    ({"max_shots": 0}, "max_shots must be an integer of at least 1 and at most"),
    ({"announce_cap": 1}, "announce_cap must be one of False, True"),
    ({"reply_keys": "action"}, "reply_keys must be"),
    ({"bad_target": "ignore"}, "bad_target must be"),
    ({"self_target": "never"}, "self_target must be"),
    ({"target_match": "fuzzy"}, "target_match must be"),
    ({"cap_outcome": "strongest"}, "cap_outcome must be"),
    ({"base_hit_rate": 101}, "base_hit_rate must be"),
    ({"interval": 10}, "the hit rate of player_7 must be .* got 105"),
    ({"hit_rates": (50, 60)}, "hit_rates must be 10 integers"),
    ({"hit_rates": 50}, "hit_rates must be 10 integers"),
    ({"hit_rates": (50,) * 9 + (101,)}, "the hit rate of player_9"),
]
