"""What a record comes to: means and intervals, scores, skill, comparisons, rankings."""
