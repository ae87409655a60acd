"""Seeding and empty clusters on the device.

:mod:`picks` is the state of a seeding: the seeds, and each row's distance to the nearest of them;
:mod:`weighing` evaluates candidates of k-means++, :mod:`oversampling` is k-means||, and
:mod:`donors` finds the rows that fill empty clusters.
"""
