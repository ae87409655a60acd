"""Explicit vectors and matrix units of the processor, once for all kernels.

* A row in each lane: :mod:`points` and :mod:`low_points` (few features) score rows that
  :mod:`frames` has put into lanes; :mod:`lanes` and :mod:`row_lanes` evaluate exact distances.
* A centre in each lane: :mod:`micro`, for few rows; :mod:`candidates` for boxes of rows;
  :mod:`differences` for one centre a row.
* bfloat16: :mod:`pairs` splits numbers into two of them, which :mod:`amx` (matrix units) and
  :mod:`dot_pairs` (AVX-512) multiply.
* :mod:`limbs` moves a row's integers from sum to sum, and :mod:`digits` reads such sums as floats.
"""
