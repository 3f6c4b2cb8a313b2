"""Clients: a class for each source of completions, and layers around any of them."""
