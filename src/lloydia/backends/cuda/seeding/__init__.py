"""Seeding and empty clusters on the device.

* :mod:`seeder` has the methods of an engine, and :mod:`part_seeder` those of a part of the data.
* :mod:`state` has the state of both: each row's D to the nearest seed, and the candidates.
* :mod:`tiles` draws rows by weight times D.  Candidates of k-means++ are evaluated by
  :mod:`columns`, for few features, or by :mod:`pairs`, for those pairs of a row and a candidate
  that :mod:`screen` cannot exclude by :mod:`int8_rows`.
* :mod:`oversampling` draws the rows of a round of k-means||, and :mod:`several` makes them seeds.
* :mod:`donors` finds the rows that fill empty clusters.
"""
