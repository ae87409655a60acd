"""Images: segmented and reduced to palettes, in any colour space."""
