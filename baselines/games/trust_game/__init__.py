"""trust_game."""
