"""The classics."""
