"""The progress of fits: stages (:mod:`stages`), iterations, and estimates of the time left."""
