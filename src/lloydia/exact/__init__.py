"""The contract: what the answer is, in plain NumPy.

Everything here is short, slow and right.  The engines in :mod:`lloydia.backends` compute the same
bits by other means; the tests compare them with this package, and this package with exact rational
arithmetic.
"""
