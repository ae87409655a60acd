"""k-means++ and k-means|| on the processor.

:mod:`picks` is the state of a seeding, with :mod:`weights` to draw from; its parts see it by
:mod:`protocols`.  Candidates are evaluated by :mod:`low_seeds` (few features), :mod:`wide_seeds`
(which rows they can come nearer to, :mod:`screen` says) or :mod:`sparse_seeds`; :mod:`greedy` seeds
few rows in one call.  :mod:`oversampling` is k-means||.
"""
