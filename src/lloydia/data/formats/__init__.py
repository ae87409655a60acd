"""Formats of files: known by the first bytes, opened, decompressed, and checked before reading."""
