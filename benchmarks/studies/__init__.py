"""Studies: scripts whose dated results are committed; they are not in the wheel."""
