"""The CPU engine: Numba kernels over blocks of rows, on the threads of :mod:`runtime.pool`.

Packages, from the top: each imports only from those below it, and says in its docstring what its
modules are.

* :mod:`engine` is the engine, on :mod:`clusters` (sums and means); :mod:`part` is the engine as one
  part of a larger data set.
* :mod:`steps`: one assignment by each algorithm.
* :mod:`accelerated`: the kernels of Hamerly, Exponion, Elkan, Yinyang and filtering.
* :mod:`seeding`: k-means++ and k-means||.
* :mod:`scan`: the nearest of all centres.
* :mod:`rows`: the rows in their place; :mod:`update`: sums of what changed, and means.
* :mod:`simd`: vectors and matrix units; :mod:`runtime`: how kernels are compiled and run;
  :mod:`protocols`: what packages want of each other.
"""
