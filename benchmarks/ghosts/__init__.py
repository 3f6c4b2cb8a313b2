"""Ghosts: recorded players that sit down again, without their model or its server."""
