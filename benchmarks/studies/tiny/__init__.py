"""The making of the embedded model: games played by scripted characters, training, evaluation."""
