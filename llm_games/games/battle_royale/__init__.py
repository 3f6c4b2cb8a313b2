"""battle_royale."""
