"""sealed_bid_auction."""
