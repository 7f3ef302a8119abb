"""Pages for a browser: what they show, and the templates that show it. Knows no run folder."""
