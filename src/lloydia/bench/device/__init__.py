"""The benchmark on a GPU: the same rows on the device, the same start, the same iterations.

Unlike on a CPU (:mod:`lloydia.bench`), all contenders run in one process and take turns: the device
does one thing at a time, and its own events time it.  X is on the device before the time begins, in
the type that a contender computes in.

- *iterations*: a whole fit of ten iterations (fewer where ours has converged), divided by their
  number: what a library does once a fit is included.  Every contender does as many as ours.
- *fits*: a whole fit of ours to scikit-learn's stop rule at tol = 1e-4, and as many iterations of
  every other contender, whose stop rules differ; and our CPU engine, whose result must be the same
  to the last bit.

Labels are judged against the centres that they belong to.  flash-kmeans returns the labels of its
last assignment and the centres of the update after it.  So every contender gets the same centres,
and one more iteration from there returns its labels of exactly these centres.
"""
