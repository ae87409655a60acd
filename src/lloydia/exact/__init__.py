"""The contract: the definition of the result in plain NumPy.

This package is short, slow and correct.  The engines in :mod:`lloydia.backends` compute the same
bits by faster methods.  The tests compare the engines with this package, and this package with
exact rational arithmetic.
"""
