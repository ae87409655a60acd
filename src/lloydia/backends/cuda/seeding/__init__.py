"""Seeding and empty clusters on the device.

* :mod:`seeds` are an engine's questions, which a :mod:`seeder` answers; :mod:`part_seeder` answers
  those to a part of the data.
* :mod:`state` is what both keep: each row's D to the nearest seed, and the candidates.
* :mod:`tiles` draws rows by weight times D.  Candidates of k-means++ are evaluated by
  :mod:`columns`, of few features, or :mod:`pairs`: pairs of a row and a candidate, those that
  :mod:`screen` cannot exclude by :mod:`int8_rows`.
* :mod:`oversampling` draws the rows of a round of k-means||, and :mod:`several` makes them seeds.
* :mod:`donors` finds the rows that fill empty clusters.
"""
