"""el_farol_bar."""
