"""The nearest of all centres, for every row: low precision, and exact distances where that ties.

* :mod:`scanners` chooses the scan for the data, the centres and the processor; :mod:`nearest` says
  what a scan takes and gives.
* :mod:`centers`, :mod:`packing` and :mod:`tile_panels` store centres for it.
* Dense rows: :mod:`panel_scan` on vectors, :mod:`tile_scan` on matrix units, by
  :mod:`group_scores` and :mod:`tile_scores`; :mod:`coarse_scan` looks at the leading parts first;
  :mod:`held` keeps few rows framed.  :mod:`settle` decides rows in doubt between their
  :mod:`rivals` by exact distances.  Sparse rows: :mod:`sparse_scan`.
* Few rows, for :mod:`lloydia.backends.cpu.accelerated`: :mod:`panels`, :mod:`row_scan`, centres
  that are :mod:`grouped`, and distances from :mod:`scores` within :mod:`bounds`.
"""
