"""Pictures: colour spaces, segments, and what they are made of."""
