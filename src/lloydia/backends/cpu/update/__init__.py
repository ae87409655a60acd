"""The second half of an iteration: sums of what changed, and means.

:mod:`changes` lists the rows whose labels changed, :mod:`sums` adds their integers, and
:mod:`means` divides the sums.
"""
