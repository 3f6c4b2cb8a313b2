"""divide_dollar."""
