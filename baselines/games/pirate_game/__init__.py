"""pirate_game."""
