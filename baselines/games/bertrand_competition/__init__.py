"""bertrand_competition."""
