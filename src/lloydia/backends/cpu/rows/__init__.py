"""The rows in this process's memory.

:mod:`dataset` holds rows and weights, and hands out blocks of them to threads; :mod:`features`
reads one row, dense or sparse; :mod:`distances` computes exact distances; :mod:`curve` orders rows
along a Hilbert curve, and :mod:`read_only` passes read-only rows to kernels for writable rows.
"""
