"""One file a game: parameters, a state of arrays, and pure functions."""
