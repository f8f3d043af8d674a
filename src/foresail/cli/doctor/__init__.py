"""`foresail doctor`: what is wrong with an installation, why, and what to do."""
