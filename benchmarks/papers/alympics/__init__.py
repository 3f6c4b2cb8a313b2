"""alympics."""
