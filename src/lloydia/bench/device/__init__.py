"""The benchmark on a GPU: the same rows on the device, the same start, the same iterations.

Unlike on a CPU (:mod:`lloydia.bench`), all sides run in one process and take turns: the device does
one thing at a time, and what it does is timed by its own events.  X lies on the device before the
clock runs, in the type that a side computes in.

- *iterations*: a whole fit of ten iterations (fewer where ours has converged), divided by their
  number: what a library does once a fit is included.  Every side does as many as ours.
- *fits*: a whole fit of ours to scikit-learn's stop rule at tol = 1e-4, and as many iterations of
  every other side, whose stop rules differ; and our CPU engine, whose every bit must be the same.

Labels are judged against the centres that they belong to.  flash-kmeans returns the labels of its
last assignment and the centres of the update after it; so every side is given the same centres, and
one more iteration from there gives its labels to exactly these.
"""
