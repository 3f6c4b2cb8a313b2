"""beauty_contest."""
