"""budget_auction."""
