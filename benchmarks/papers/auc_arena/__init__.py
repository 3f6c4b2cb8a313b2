"""auc_arena."""
