"""bargaining."""
