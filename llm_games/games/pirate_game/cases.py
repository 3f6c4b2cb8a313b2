"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"players": 4, "gold": 5},
    {"players": 3, "quota": "majority", "payoff": "lexicographic"},
]
QUICK = {"players": 4, "gold": 20}
FIXED = "accept"
COARSE = {"players": 3, "gold": 2}
TOLD = {"players": [7], "gold": [77], "quota": ["majority"], "payoff": ["lexicographic"]}
PAID = [{"players": 5, "gold": 3, "payoff": "lexicographic"}]
ONES = [
    {"players": 2, "gold": 1},
    {"players": 3, "gold": 1, "payoff": "lexicographic", "quota": "majority"},
]
DRAWN = {"gold": [1, 2, 3, 4, 5, 6]}
TOO_LARGE = {"gold"}
BAD_PARAMETERS = [
    ({"gold": 0}, "gold must be an integer of at least 1 .*got 0"),
    ({"gold": 10.5}, "gold must be"),
    ({"quota": "all"}, "quota must be one of 'half', 'majority', got 'all'"),
    ({"payoff": "utility"}, "payoff must be"),
    ({"proposal_check": "none"}, "proposal_check must be"),
    ({"vote_parse": "any"}, "vote_parse must be"),
    ({"players": 1}, "players must be"),
]
