"""Melting Pot's protocol: scores among held-out partners."""
