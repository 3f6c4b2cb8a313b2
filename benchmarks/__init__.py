"""Experiments: who plays what, run, record, resume, score, report."""
