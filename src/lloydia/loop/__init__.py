"""The loop of all fits.

:mod:`run` iterates from one start; :mod:`turns` has several runs take turns on one engine;
:mod:`empty` says what becomes of clusters without rows; :mod:`resuming` is where a fit stands, and
how it goes on.
"""
