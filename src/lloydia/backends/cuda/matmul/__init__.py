"""Runs with more than 8 features: scores by matrix units, exact distances where needed.

* :mod:`run` queues a run, in its :mod:`memory`, from a :mod:`starting` point; :mod:`buffer_maps`
  say what recordings of its launches depend on.
* :mod:`fp16_centers` stores centres in half precision.  :mod:`scan` computes scores into
  :mod:`scan_buffers` and keeps the best two of each row with :mod:`top_two`.  With at most 64
  features and 256 centres :mod:`resident_scan` does it with :mod:`packed_top_two` (on Hopper
  :mod:`hopper_scan`), with many features :mod:`wide_scan`.
* :mod:`certify` finds, by the :mod:`limits` of scores, the labels that scores prove
  (:mod:`lloydia.exact.half_certificate`).  The other rows are ambiguous.  Where centres are few,
  :mod:`recheck_all` computes D to all of them.  Else :mod:`candidates` names the few centres that
  can be nearest, :mod:`recheck_pairs` compares these, and :mod:`recheck_exact` takes the rows that
  have no candidates.  :mod:`row_lists` fills the lists of rows.
* :mod:`pruning` leaves rows out late in a run.
"""
