"""A language model of 0.9 million parameters that comes with the package and needs no network.

Distilled from scripts, it answers the prompts of the eight γ-Bench games in character and does not
reason: for demonstrations and tests, never for a leaderboard.
"""
