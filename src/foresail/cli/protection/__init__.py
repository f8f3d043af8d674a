"""`foresail protection`: what protects namespaces, and which class they name."""
