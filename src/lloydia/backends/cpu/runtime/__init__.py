"""How kernels are compiled and run.

:mod:`compiled` compiles every kernel, :mod:`kernel_cache` keeps them on disk, :mod:`counting` are
loops that compile to less code, and :mod:`pool` are the threads that run kernels on blocks of rows.
"""
