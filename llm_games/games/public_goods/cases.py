"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"players": 3, "endowment": "carry", "rounds": 5},
    {"players": 4, "initial_tokens": "random", "ratio": "1/2"},
]
QUICK = {"players": 3, "rounds": 5}
FIXED = "20"
COARSE = lambda settings: (
    {"players": 3, "tokens": 3, "rand_min": 0} if "endowment" not in settings else {}
)
TOLD = {
    "players": [7],
    "rounds": [3],
    "tokens": [33],
    "ratio": ["1/2"],
    "endowment": ["carry"],
    "initial_tokens": ["random"],
}
TOLD_FROM = [
    ({"endowment": "carry"}, {"tokens": 33}),
    ({"endowment": "carry"}, {"initial_tokens": "random"}),
    ({"initial_tokens": "random"}, {"tokens": 33}),
    ({"initial_tokens": "random"}, {"rand_min": 7}),
    ({"initial_tokens": "random", "endowment": "carry"}, {"rand_min": 7}),
]
TRUTHS = [{"players": 3, "initial_tokens": "random", "endowment": "carry"}]
PAID = [
    {"players": 3, "ratio": "7/3", "rounds": 4},
    {"players": 3, "ratio": "7/3", "rounds": 4, "endowment": "carry"},
]
ONES = [
    {"players": 2, "rounds": 1, "tokens": 1},
    {"players": 2, "rounds": 4, "tokens": 2, "endowment": "carry"},
]
DRAWN = {
    "tokens": [1, 2, 5, 10, 20],
    "ratio": ["0", "1/3", "1/2", "2/3", "0.99", "1", "1.01", "4/3", "2", "3", "5", "7/4", 4],
    "rand_min": [0, 1, 3],
}
TOO_LARGE = {"tokens"}
BAD_PARAMETERS = [
    ({"tokens": 0}, "tokens"),
    ({"ratio": 2 / 3}, "must be exact"),
    ({"endowment": "keep"}, "endowment"),
    ({"initial_tokens": "random", "rand_min": 12}, "rand_min"),
    ({"contribution_range": "any"}, "contribution_range"),
    ({"number_parse": "loose"}, "number_parse"),
]
REPLY_KEY = "tokens_contributed"
REPLIES = [
    ({}, "20", 20),
    ({"contribution_range": "unbounded"}, 35, 35),
    ({"number_parse": "truncate"}, "7.9", 7),
    ({}, 21, "range"),
    ({}, "7.9", "format"),
]
