"""public_goods."""
