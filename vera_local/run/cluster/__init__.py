"""A run spread over processes that host engines of their own. Like the stages, knows not what is said or found."""
