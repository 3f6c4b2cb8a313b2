"""travelers_dilemma."""
