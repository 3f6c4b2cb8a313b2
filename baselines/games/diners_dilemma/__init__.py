"""diners_dilemma."""
