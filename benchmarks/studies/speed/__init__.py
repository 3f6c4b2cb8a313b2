"""How fast it is, as ratios against peers in the same run on one core."""
