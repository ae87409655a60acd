"""Seeding and empty clusters on the device.

* :mod:`seeds` are an engine's questions, which a :mod:`seeder` answers; :mod:`part_seeder` answers
  those to a part of the data.
* :mod:`state` is what both keep: each row's D to the nearest seed, and the candidates.
* :mod:`plusplus_kernels` evaluates candidates of k-means++.
* :mod:`oversampling` draws the rows of a round of k-means||, and :mod:`several` makes them seeds.
* :mod:`donors` finds the rows that fill empty clusters.
"""
