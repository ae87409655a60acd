"""Explicit vectors and matrix units of the processor, once for all kernels.

* A row in each lane: :mod:`microkernel_rows_in_lanes` and :mod:`microkernel_low_dim` (few features)
  score rows that :mod:`frames` has transposed into lanes; :mod:`row_lanes` evaluates the canonical
  distance of each row to its own centre.
* A centre in each lane: :mod:`microkernel_centers_in_lanes`, for few rows; :mod:`lanes` for the
  candidates of a seeding; :mod:`candidates` for boxes of rows; :mod:`differences` for one centre.
* bfloat16: :mod:`pairs` splits numbers into two of them, which :mod:`amx` (matrix units) and
  :mod:`dot_pairs` (AVX-512) multiply.
* Bytes: :mod:`sketch_rows` compares products of rows, one in each lane, with limits.
* :mod:`limbs` moves the integers of a row from sum to sum; :mod:`digits` converts sums to floats.
"""
