"""The nearest of all centres, for every row: low precision, and exact distances for ambiguous rows.

* :mod:`scanners` chooses the scan for the data, the centres and the processor; :mod:`nearest` says
  what a scan takes and returns, and has the certificate.
* :mod:`centers`, :mod:`packing` and :mod:`tile_panels` frame and pack the centres.
* Dense rows: :mod:`panel_scan` on vectors, by :mod:`group_scores`; :mod:`tile_scan` on matrix
  units, by :mod:`tile_scores`; :mod:`bf16_prefilter` certifies rows by the bfloat16 heads only;
  :mod:`framed_cache` stores the framed rows of small data sets.
* Ambiguous rows: :mod:`close_centers` lists the centres whose scores are close to the best, and
  :mod:`recheck` evaluates exact distances to them.  Sparse rows: :mod:`sparse_scan`.
* A few selected rows, for :mod:`lloydia.backends.cpu.accelerated`: :mod:`panels`, :mod:`row_scan`,
  :mod:`grouped` centres, and distances from :mod:`scores` within :mod:`bounds`.
"""
