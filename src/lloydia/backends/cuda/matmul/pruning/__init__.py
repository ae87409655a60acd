"""Rows whose labels follow from bounds are not scored (Hamerly 2010), late in a long run.

:mod:`run` decides when; :mod:`bounds` are moved by how far centres moved; :mod:`largest_moves` are
the centres that moved most, which :mod:`pruned_rows` scores for the rows that bounds prune;
:mod:`active_rows` scores the rest.
"""
