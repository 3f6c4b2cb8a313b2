"""Cross-play: every player with each, and the game between them."""
