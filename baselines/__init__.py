"""Whom to compare with: rational, best-response, rule, level-k and embedded players."""
