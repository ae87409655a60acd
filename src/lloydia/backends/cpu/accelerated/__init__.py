"""Kernels of the algorithms that skip distances: one file each, see :mod:`lloydia.algorithms`.

:mod:`hamerly`, :mod:`exponion`, :mod:`elkan`, :mod:`yinyang` with its :mod:`yinyang_slots`, and
:mod:`filtering` with its :mod:`tiles` of rows.  An iteration calls them from
:mod:`lloydia.backends.cpu.steps`.
"""
