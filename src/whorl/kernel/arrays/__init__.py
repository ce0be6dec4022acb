"""Pure functions over arrays, compiled ahead of any program. The only importer of the JIT compiler."""
