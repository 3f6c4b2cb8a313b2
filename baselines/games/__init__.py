"""Whom to compare with, one room for each game."""
