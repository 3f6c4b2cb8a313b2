"""What tests play of this game, see ``tests/playing.py``."""

SETTINGS = [
    {"periods": 4, "discount": ("9/10", "4/5"), "outside": (10, 36), "first": "drawn"},
    {"method": "strategy", "pie": 1000, "breakdown": (1, 2)},
    {"veto": False, "pie": 7},
]
QUICK = {"pie": 10, "periods": 3, "discount": "1/2"}
FIXED = "40"
COARSE = lambda settings: (
    {"pie": 2, "breakdown": 0}
    | ({"periods": 2, "outside": (1, 0)} if "periods" in settings else {})
)
TOLD = {
    "pie": [77],
    "periods": [3],
    "outside": [(13, 14), 13],
    "breakdown": [(3, 4), (0, 17), 17],
    "first": ["drawn"],
    "method": ["strategy"],
    "veto": [False],
}
TOLD_FROM = [
    ({"periods": 2}, {"discount": "9/10"}),
    ({"periods": 2}, {"discount": (1, "1/3")}),
    ({"periods": 2, "discount": "1/2"}, {"outside": (5, 5)}),
]
TRUTHS = [{"periods": 3, "discount": ("1/2", "1/3"), "breakdown": (3, 4), "outside": (5, 6)}]
PAID = [
    {"periods": 3, "discount": ("1/2", "2/3"), "outside": (5, 6), "breakdown": (3, 4)},
    {"method": "strategy", "breakdown": (3, 4)},
]
ONES = [{"pie": 1}, {"pie": 1, "breakdown": 1, "veto": False}]
DRAWN = {
    "pie": [1, 2, 3, 5, 8, 10],
    "periods": [1, 2, 3, 4],
    "discount": [1, "1/2", "9/10", (1, "1/3"), ("1/4", "3/4")],
    "outside": [None, None, 0, 1, (1, 0)],
    "breakdown": [0, 1, (0, 1)],
}
TOO_LARGE = {"pie"}
KEPT = 2000
BAD_PARAMETERS = [
    ({"preset": "dictator", "veto": True}, "preset dictator of bargaining has veto=False"),
    ({"players": 3}, "players must be an integer of at least 2 and at most 2, got 3"),
    ({"pie": 0}, "pie must be an integer of at least 1"),
    ({"pie": 10**6 + 1}, "pie must be"),
    ({"periods": 51}, "periods must be an integer of at least 1 and at most 50"),
    ({"discount": 0}, "each discount must be above 0"),
    ({"discount": "3/2"}, "each discount must be a ratio of at least 0 and at most 1"),
    ({"discount": (1, 1, 1)}, "discount must be one for all or 2"),
    ({"outside": 101}, "outside, breakdown must be at most 100, got 101"),
    ({"breakdown": (0, -1)}, "each breakdown must be an integer of at least 0"),
    ({"breakdown": (1, 2, 3)}, "breakdown must be"),
    ({"first": 2}, "first must be one of 0, 1, 'drawn', got 2"),
    ({"method": "both"}, "method must be one of"),
    ({"veto": False, "periods": 2}, "exclude one another"),
    ({"veto": False, "method": "strategy"}, "exclude one another"),
    ({"method": "strategy", "outside": 3}, "exclude one another"),
    ({"periods": 50, "discount": "9/10"}, "would count beyond"),
]
REPLY_KEY = "offer"
REPLIES = [
    ({}, 40, 40),
    ({}, "40", 40),
    ({"pie": 7}, "7.0", 7),
    ({}, 101, "range"),
    ({}, -1, "range"),
    ({}, 1.5, "format"),
    ({}, "half", "format"),
]
