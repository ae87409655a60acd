"""The loop of all fits.

- :mod:`run` iterates from one start.
- :mod:`several_runs` makes several runs at the same time, in step or in turns.
- :mod:`empty` handles clusters without rows.
- :mod:`resuming` stores the state of a fit and continues from it.
- :mod:`data_identity` recognizes the rows of a resumed fit, and :mod:`stored_parameters` writes
  parameters as numbers and text.
- :mod:`minibatch` is the loop of mini-batch k-means.
- :mod:`minibatch_step` is one step of mini-batch k-means.
"""
