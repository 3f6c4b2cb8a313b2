"""Other words for the diner's dilemma."""

from llm_games.disguise import Surface

SURFACE = Surface(
    words=(
        ("costly", "lavish", "grand", "deluxe", "premium"),
        ("cheap", "plain", "simple", "modest", "basic"),
        ("dish dishes", "course courses", "plate plates", "menu menus"),
        ("meal", "platter", "supper", "feast"),
        ("point points", "credit credits", "mark marks", "star stars"),
        ("bill bills", "tab tabs", "check checks"),
        ("evening evenings", "day days", "night nights", "week weeks"),
        ("restaurant", "tavern", "café", "bistro"),
        ("satisfaction", "pleasure", "comfort", "benefit"),
        ("chosen", "selected", "picked", "preferred"),
    ),
    counts={
        "money": "cheap_price cheap_utility costly_price costly_utility utility bill share",
        "seats": "players costly cheap",
        "rounds": "rounds round",
        "words": "dish",
    },
)
