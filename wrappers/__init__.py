"""What each kind of player needs from the same game: policies, language models, views."""
