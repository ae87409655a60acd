"""Compilation ahead of the first fit.

:mod:`warm_up` is the command, :mod:`fits` are the fits whose kernels it compiles, :mod:`kernels`
observes which kernels are compiled, and :mod:`folders` finds where they are stored.
"""
