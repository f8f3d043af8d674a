"""`foresail check`: RestoreChecks and their results."""
