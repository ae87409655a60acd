"""Rows whose labels follow from bounds are not scored (Hamerly 2010), late in a long run.

:mod:`run` decides when; :mod:`bounds` are moved by how far centres moved; :mod:`fastest` are the
centres that moved most, which :mod:`spared` scores for the rows that bounds spare; :mod:`due`
scores the rest.
"""
