"""Sources and sinks: rows, Arrow data, frames and files in; files out."""
