"""The contract: the definition of the result in plain NumPy.

This package is short, slow and correct.  The engines in :mod:`lloydia.backends` compute the same
bits by faster methods.  The tests compare the engines with this package, and this package with
exact rational arithmetic.

* :mod:`distance`: D, and the nearest centre.  :mod:`sums`: integers that add up in any order, and
  their grid.  :mod:`means`: centres from these sums.  :mod:`counter`: which rows k-means|| takes.
* When a score proves which centre is nearest: :mod:`certificate` for float32,
  :mod:`half_certificate` for half precision on a GPU.
"""
