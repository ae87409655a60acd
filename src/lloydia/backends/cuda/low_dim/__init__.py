"""Runs over at most 8 features: rows in registers, centres broadcast, four kernels an iteration.

* :mod:`run` decides what is queued, by :mod:`launches`, of a :mod:`shape`, in its :mod:`memory`;
  :mod:`reports` is what the host reads of it.  :mod:`stages` says when kernels do anything.
* The first kernel measures rows and start (:mod:`grid`), and the next one tabulates the centres
  (:mod:`center_table`).
* :mod:`assign` labels rows whose nearest centre :mod:`scores` make certain, and lists those that
  changed and those that are ambiguous (:mod:`device_functions.ptx.warp_lists`); :mod:`recheck`
  labels these by canonical distances.
* :mod:`update` moves the rows that changed from sum to sum, in shared memory where
  :mod:`table_sums` says so.
* :mod:`means` turns sums into centres, writes the report and the next table of centres, and stops
  the run.
"""
