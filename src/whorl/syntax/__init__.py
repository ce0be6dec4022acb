"""Text in, syntax tree out, for programs and for deltas. The only importer of the parser library."""
