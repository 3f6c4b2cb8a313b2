"""Where completions come from: one class a kind of source, layers around any of them."""
