"""The second half of an iteration: sums of the rows that changed, centres, and the report.

* :mod:`cluster_sums` moves changed rows between sums as :mod:`dispatch` chooses: by
  :mod:`table_sums`, in shared memory (:mod:`table_layout`, :mod:`bank_swizzle`), or by
  :mod:`sorted_sums`, after :mod:`sorted_updates` has sorted them by cluster.
* :mod:`means` divides sums, writes the report and begins the next iteration; :mod:`reports` reads
  reports back; :mod:`mean_variance` is the scale of the stop rule `tol`.
* :mod:`all_reduce` writes and reads the messages that add up the sums of several devices.
"""
