"""What theory says about each game: pure functions on players-first arrays, one file a game."""
