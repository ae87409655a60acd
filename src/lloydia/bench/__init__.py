"""Lloydia compared with other libraries: the same data, start, iterations and threads, in one run.

Every peer's library has a process of its own (:mod:`~lloydia.bench.worker`), so that no library's
threads, waiting or crashes touch another's; the processes take turns.  The process that measures
(:mod:`~lloydia.bench.run`) holds the data too and judges every result before its time is shown
(:mod:`~lloydia.bench.judge`).

Two figures describe a case of n rows, d features and k clusters:

- *iterations*: all libraries compute all distances.  With T(m) the time of a fit of m iterations,
  an iteration takes ``(T(a + b) - T(a)) / b``, which leaves out what a library does once a fit;
- *fits*: a whole fit from the same start to the same stop rule, with each library's best algorithm.
"""
