"""The rows in GPU memory, and what is measured of them.

* :mod:`memory` says how many bytes rows need.
* :mod:`magnitudes` (the largest and the smallest magnitude of each feature),
  :mod:`fixed_point_grid` (the powers of two of exact sums) and :mod:`found_grid` (the same, found
  on the device).
* :mod:`fp16_rows` are the rows in half precision, in a frame that :mod:`fp16_frame` chooses;
  :mod:`packing` stores centres in it; :mod:`frame` is the frame of float32 scores.
* :mod:`distances`, :mod:`totals`, :mod:`low_cost` and :mod:`cost` (inertia), :mod:`distinct` (which
  labels occur), :mod:`ending` (the end of a run).
"""
