"""Runs shown in a browser on this machine, page by page. Knows no model, and changes nothing in any run."""
