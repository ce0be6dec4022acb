"""Error codes and their texts, source spans, carets, near-miss names."""
