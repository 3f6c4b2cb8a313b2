"""What tests play of this game, see ``tests/playing.py``."""

from llm_games.games.deal_or_no_deal.divisions import law

SPLIT = ((1, 4, 1), (4, 1, 2), (0, 2, 2))
SETTINGS = [
    {"protocol": "claims", "items": ("pen", "cup")},
    {"open_values": True, "scenario": SPLIT, "discount": "9/10", "moves": 5},
    {"continuation": "1/2", "first": 1},
]
QUICK = {"moves": 4}
FIXED = "1-1-1"
COARSE = lambda settings: (
    {}
    if "items" in settings
    else {"scenario": SPLIT} | ({} if "continuation" in settings else {"moves": 3})
)
TOLD = {
    "items": [("pen", "cup", "key"), ("a", "b")],
    "protocol": ["claims"],
    "moves": [7],
    "discount": ["9/10"],
    "continuation": ["2/3"],
    "open_values": [True],
}
TRUTHS = [{"discount": "1/2", "moves": 4, "open_values": True}]
PAID = [{"discount": "2/3", "moves": 6}, {"protocol": "claims"}]
ONES = [{"moves": 1}, {"moves": 2, "scenario": SPLIT}]
DRAWN = {
    "moves": [1, 2, 3, 4],
    "discount": [1, "1/2", "9/10"],
    "open_values": [True, True, False],
    "items": [("pen", "cup")],
    "scenario": [lambda rng, n, k=k: rng.choice(law(k)).tolist() for k in (2, 3, 3)],
}
TOO_LARGE = {"scenario", "moves", "open_values"}
KEPT = 2000
BAD_PARAMETERS = [
    ({"preset": "dialogue", "protocol": "offers"}, "has protocol=claims, got 'offers'"),
    ({"players": 3}, "players must be an integer of at least 2 and at most 2"),
    ({"items": ("book",)}, "items must be 2 to 4 different words"),
    ({"items": ("book", "book")}, "items must be 2 to 4 different words"),
    ({"items": "book"}, "items must be"),
    ({"protocol": "talk"}, "protocol must be one of"),
    ({"moves": 0}, "moves must be"),
    ({"discount": 0}, "discount must be above 0"),
    ({"continuation": "1/2", "moves": 29}, "moves must be at least 30"),
    ({"protocol": "claims", "discount": "1/2"}, "claims are made once"),
    ({"moves": 20, "discount": "9/10"}, "moves=20, discount=9/10: with these"),
    ({"scenario": "random"}, "scenario must be 'drawn', or counts"),
    ({"scenario": ((1, 4, 1), (4, 1, 2), (0, 2, 3))}, "scenario must be 'drawn', or counts"),
    ({"scenario": ((1, 4, 1), (0, 2, 2), (0, 2, 2))}, "none worthless to both"),
    ({"scenario": ((1, 4), (2, 2), (6, 1))}, "two rows of values for 3 kinds"),
    ({"scenario": ((1, 4, 1), (4, 1), (0, 2, 2))}, r"got \(\(1, 4, 1\), \(4, 1\), "),
    ({"scenario": (1, 4, 1)}, r"got \(1, 4, 1\)"),
    ({"first": 2}, "first must be"),
]
REPLY_KEY = "take"
REPLIES = [
    ({"scenario": SPLIT}, {"book": 1, "hat": 0, "ball": 1}, 26),
    ({"scenario": SPLIT}, {"hat": "4"}, 20),
    ({"scenario": SPLIT}, {}, 0),
    ({"scenario": SPLIT}, {"book": 2}, ("range", 50)),
    ({"scenario": SPLIT}, {"hat": 7}, "range"),
    ({"scenario": SPLIT}, {"hat": -1}, "range"),
    ({"scenario": SPLIT}, "accept", ("range", 125)),
    ({"scenario": SPLIT}, {"pen": 1}, "format"),
    ({"scenario": SPLIT}, {"hat": "all"}, "format"),
    ({"scenario": SPLIT}, "everything", "format"),
    ({"scenario": SPLIT}, 3, "format"),
]
