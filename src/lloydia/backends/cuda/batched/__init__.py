"""Many data sets at once.

:mod:`batch` iterates all in the same launches; :mod:`rows` holds their rows, and :mod:`run` their
state.  :mod:`item` is an engine for one of them, and :mod:`streams` are the streams of those
that have launches of their own; :mod:`rehearsal` finds out which kernels are needed.  To the
kernels of an iteration a data set by itself is a batch of one.
"""
