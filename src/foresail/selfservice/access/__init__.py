"""Authorisation as the requester: what a restore may bring back, and what is read to find out."""
