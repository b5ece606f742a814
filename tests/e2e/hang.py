"""How long a test waits before it calls something hung."""

# Ends a hang and judges nothing: at least ten times what any single wait takes on a quiet machine.
HANG_S = 300
