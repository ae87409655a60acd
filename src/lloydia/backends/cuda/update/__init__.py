"""The second half of an iteration: sums of the rows that changed, centres, and the report.

* :mod:`moving` chooses how rows move from sum to sum: by :mod:`table_sums`, in a
  :mod:`shared_table` (:mod:`table_layout`, :mod:`table_banks`, :mod:`later_limbs`), or by
  :mod:`moves`, after :mod:`entries` has sorted them by cluster.
* :mod:`means` divides sums, writes the report and begins the next iteration; :mod:`reports` is the
  host's side of it; :mod:`spread` is the mean variance, by which runs may end.
* :mod:`all_reduce` adds the sums of several devices.
"""
