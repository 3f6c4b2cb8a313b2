"""The players of a game: policies, language models, and environments for learners."""
