"""minimum_effort."""
