"""Runs over more than 8 features: scores on matrix units, and exact distances where they tie.

* :mod:`run` is the state of a run, in its :mod:`memory`, from a :mod:`starting` point.
* :mod:`fp16_centers` stores centres in half precision.  :mod:`scan` scores rows, in its
  :mod:`scan_buffers`: by
  :mod:`top_two`; of at most 64 features and 256 centres by :mod:`resident_scan` with
  :mod:`packed_top_two`, on Hopper by :mod:`hopper_scan`; of many features by :mod:`wide_scan`.
* :mod:`certify` says, by :mod:`limits`, which labels the scores prove
  (:mod:`lloydia.exact.half_certificate`).  For the other rows :mod:`recheck_all` finds the nearest
  of all centres by D, or :mod:`candidates` names the few centres that can be nearest,
  :mod:`recheck_pairs` decides between them, and :mod:`recheck_exact` takes what is left of many
  centres; :mod:`row_lists`.
* :mod:`pruning` leaves out rows late in a run.
"""
