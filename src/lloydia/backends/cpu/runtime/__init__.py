"""How kernels are compiled and run.

:mod:`compiled` compiles every kernel, :mod:`kernel_cache` stores them on disk, :mod:`counting` has
loops that compile to less code, and :mod:`pool` has the threads that run kernels on blocks of rows.
"""
