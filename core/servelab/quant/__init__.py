"""Number formats, bit by bit (numpy)."""
