"""Other words for the division of a dollar."""

from llm_games.disguise import Surface

SURFACE = Surface(
    words=(
        ("coin coins", "gem gems", "bead beads", "ticket tickets", "chip chips"),
        ("bid bids bid:past", "ask asks asked", "call calls called", "shout shouts shouted"),
        (
            "claim claims claimed unclaimed",
            "order orders ordered unordered",
            "reserve reserves reserved unreserved",
        ),
        ("pot", "jar", "chest", "barrel"),
        ("limit", "cap", "ceiling", "bound"),
        ("amount", "size", "quantity"),
    ),
    counts={
        "coins": "golds bid sum receipt",
        "seats": "players",
        "rounds": "rounds round",
    },
    action="coins",
)
