"""Shall We Talk."""
