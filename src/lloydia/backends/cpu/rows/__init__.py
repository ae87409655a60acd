"""The rows in this process's memory.

:mod:`dataset` holds rows and weights, and gives blocks of them to threads; :mod:`features` reads
one row, dense or sparse; :mod:`distances` are exact; :mod:`curve` orders rows along a Hilbert
curve, and :mod:`read_only` gives rows that may not be written to kernels for other rows.
"""
