"""Formats of files: detection by the first bytes, opening, decompression, and early checks."""
