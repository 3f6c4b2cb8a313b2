"""Runs: what is played, played, recorded, and read again."""
