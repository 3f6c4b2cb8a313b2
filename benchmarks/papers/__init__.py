"""The papers whose games these are, a room each; see `runs.paper` for what a room hands over."""
