"""Players that follow a rule: one file a kind, one function a game."""
