"""Other words for the public goods game."""

from llm_games.disguise import Surface

SURFACE = Surface(
    words=(
        ("token tokens", "pearl pearls", "shell shells", "bead beads", "ticket tickets"),
        ("pot", "barrel", "jar", "chest"),
        ("fund", "kitty", "treasury", "purse"),
        ("pool", "basin", "tank", "well"),
        ("project", "venture", "scheme", "garden"),
        ("box", "basket", "bag", "crate"),
        ("contributions contributed", "deposits deposited", "donations donated", "payments paid"),
    ),
    counts={
        "tokens": "tokens rand_min own contribution gain pot contributions all_tokens",
        "seats": "players",
        "rounds": "rounds round",
        "shares": "ratio",
    },
    action="tokens",
)
