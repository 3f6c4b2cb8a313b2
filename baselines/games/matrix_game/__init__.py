"""matrix_game."""
