"""english_auction."""
