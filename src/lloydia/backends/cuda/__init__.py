"""The GPU engine: Triton kernels over rows on the device.

Packages, from the top: each imports only from those below it, and says in its docstring what its
modules are.

* :mod:`batched`: many data sets at once; :mod:`out_of_core`: rows that exceed a GPU's memory;
  :mod:`multi_gpu`: several GPUs.
* :mod:`engine`, with :mod:`beginning` (how runs begin) and :mod:`gridded` (what is known of rows
  before and while they are run).  What an iteration launches is chosen in
  :meth:`low_dim.run.LowRun._queue` and :meth:`matmul.run.TensorRun.launch`.
* :mod:`seeding`: k-means++, k-means||, and the rows that fill empty clusters.
* :mod:`matmul`: runs over more than 8 features; :mod:`low_dim`: runs over at most 8.
* :mod:`update`: sums of what changed, centres, reports.
* :mod:`rows`: the rows in their place, and what is measured of them.
* :mod:`device_functions`: what kernels call; :mod:`runtime`: devices, streams and launches;
  :mod:`protocols`: what packages want of each other; :mod:`options`: what can be turned off, to
  find a fault or to measure what it brings.

Words:

* *D*: the squared distance as the contract defines it; *extent*: the largest and the smallest
  magnitude of each feature.
* *grid*: the powers of two that the numbers of each feature are multiples of in exact sums
  (:mod:`lloydia.exact.sums`); *limb*: one of the integers of such a sum; *fixed-point grid*: this
  grid on the device.
* *frame*: the shift and the scale by which rows become small numbers near 0, for float32 or float16
  scores.
* *flow*: the few integers by which the kernels of a run steer each other; *halted*: what is queued
  does nothing until the host has looked.
* *told*: what kernels have written for the host; of a scan, what it has found of each row, for the
  judge.  *desk*: where the programs of one launch meet; in :mod:`matmul.hopper_scan`, where the
  threads of a group leave what they have found.
* *item*: a data set of a batch; *part*: the rows of one of several devices; *slot*: where an
  iteration's centres and report are kept; of scores, with *cell*, a class of columns
  (:mod:`matmul.top_two`).
* *start*: what a centre's scores begin with; *norm*, *rest*: bounds of what is stored in half
  precision, and of what that leaves out; *limit*: the score above which no centre is the nearest;
  *in doubt*: a row that has a second score which is not above it.
* *lag*: how many iterations the host may be behind; *together*: how many are launched at once;
  *unchecked*: of a run, what it found of its rows has not been looked at by the host.
* *plan*: the launches of some work, for any memory; *series*: the same as numbers; *layout*: what
  they depend on.

Nothing inside an iteration waits for the host.  An iteration of few features is a stage of one
persistent kernel; of more features, five recorded kernels where all centres take little memory, up
to a dozen for many.  A flag on the device turns what is queued past the end, or past an empty
cluster, into nothing.
"""
