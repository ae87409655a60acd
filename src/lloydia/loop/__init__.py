"""The loop of all fits.

:mod:`run` iterates from one start; :mod:`several_runs` does several runs under one host, in step or
in turns; :mod:`empty` says what becomes of clusters without rows; :mod:`resuming` is where a fit
stands, and how it goes on; :mod:`minibatch_step` is a step of mini-batch k-means.
"""
