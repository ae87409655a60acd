"""The CPU engine: Numba kernels over blocks of rows, on the threads of :mod:`runtime.pool`.

Packages, from the top: each imports only from those below it, and says in its docstring what its
modules are.

* :mod:`engine` is the engine, and :mod:`part` the same as one part of a larger data set.  Both own
  a data set (:mod:`rows.dataset`), a seeder (:mod:`seeding.seeder`) and a run (:mod:`run`), and
  delegate to them.
* :mod:`run` is the state of a run: labels, bounds, centres.  It has the sums and means of
  :mod:`clusters`, and keeps its arrays in :mod:`memory`, which blocks of a stream share.
* :mod:`choices` names the algorithms that "auto" uses, for ``lloydia info``.
* :mod:`steps`: one assignment by each algorithm.
* :mod:`accelerated`: the kernels of Hamerly, Exponion, Elkan, Yinyang and filtering.
* :mod:`seeding`: k-means++ and k-means||.
* :mod:`scan`: finds the nearest of all centres.
* :mod:`rows`: the data set; :mod:`update`: sums of changed rows, and means.
* :mod:`simd`: vectors and matrix units; :mod:`runtime`: how kernels are compiled and run;
  :mod:`protocols`: parts of the engine as lower packages see them.
"""
