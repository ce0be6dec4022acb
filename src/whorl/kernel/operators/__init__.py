"""Operators over batches: joins, conditions, calculations, and the pipelines that rules become."""
