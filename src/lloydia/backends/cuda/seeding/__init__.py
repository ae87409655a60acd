"""Seeding and empty clusters on the device.

:mod:`state` is the state of a seeding: the seeds, and each row's D to the nearest of them.
:mod:`plusplus_kernels` draws and evaluates candidates of k-means++, :mod:`oversampling` is
k-means||, and :mod:`donors` finds the rows that fill empty clusters.
"""
