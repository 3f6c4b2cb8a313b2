"""deal_or_no_deal."""
