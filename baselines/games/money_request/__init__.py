"""money_request."""
