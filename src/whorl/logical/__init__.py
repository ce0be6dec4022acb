"""Checked program in, algebra with fixpoints out; `rewrites/` improves it, one rewrite a file."""
