"""Late in a long run, rows whose labels follow from bounds are not scored (Hamerly 2010).

:mod:`run` decides when.  :mod:`bounds` change with the movements of centres.  :mod:`largest_moves`
finds the centres that moved most; :mod:`pruned_rows` scores all rows for these only and prunes
rows; :mod:`active_rows` scores the other rows for all centres.
"""
