"""The public face: a session that takes changes, and views that follow them."""
