"""What characters do, say and feel in each game; found by the game's name."""
