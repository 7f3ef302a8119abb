"""Hosts of open-weight models. Knows nothing clinical."""
