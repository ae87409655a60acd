"""How far a fit is: what its stages are (:mod:`stages`), and the time that they still take."""
