"""The second half of an iteration: sums of the rows that changed, centres, and the report.

* :mod:`cluster_sums` chooses how rows move from sum to sum: by :mod:`table_sums`, in a
  :mod:`shared_table` (:mod:`table_layout`, :mod:`bank_swizzle`, :mod:`limb_overflow`), or by
  :mod:`sorted_sums`, after :mod:`sorted_updates` has sorted them by cluster.
* :mod:`means` divides sums, writes the report and begins the next iteration; :mod:`reports` is the
  host's side of it; :mod:`mean_variance` is the mean variance, by which runs may end.
* :mod:`all_reduce` adds the sums of several devices.
"""
