"""The GPU engine: Triton kernels over rows on the device.

Packages, from the top: each imports only from those below it, and says in its docstring what its
modules are.  Of the modules, :mod:`protocols`, :mod:`options`, :mod:`dispatch` and :mod:`run_kinds`
are exempt: all packages may import them, and they may import from packages, but in no circle.

* :mod:`batched`: many data sets at once; :mod:`out_of_core`: rows that exceed a GPU's memory;
  :mod:`multi_gpu`: several GPUs.
* :mod:`engine` passes each question of the loop to one of three: :mod:`dataset` (the rows, and
  what is known of them; :mod:`placement` brings them to the GPU), a seeding, or :mod:`iterations`
  (those of a run, which :mod:`run_setup` sets up).  :mod:`rehearsal` finds out which kernels a fit
  needs, to compile them side by side.
* :mod:`seeding`: k-means++, k-means||, and the rows that fill empty clusters.
* :mod:`matmul`: runs over more than 8 features; :mod:`low_dim`: runs over at most 8.
* :mod:`update`: sums of the rows that changed, centres, reports.
* :mod:`rows`: the rows in GPU memory, and what is measured of them.
* :mod:`device_functions`: functions that kernels call; :mod:`runtime`: devices, streams and
  launches; :mod:`protocols`: the types that packages share; :mod:`dispatch`: the table of which
  kernels run, with the reasons; :mod:`run_kinds`: the kinds of runs, by the number of features, and
  what follows from each; :mod:`options`: switches, to find a fault or to measure what a
  mechanism brings.

Terms:

* *D*: the squared distance as the contract defines it; *magnitudes*: the largest and the smallest
  absolute value of each feature.
* *grid*: the powers of two of which the numbers of each feature are multiples in exact sums
  (:mod:`lloydia.exact.sums`); *limb*: one of the integers of such a sum; *fixed-point grid*: this
  grid on the device.
* *frame*: the shift and the scale that bring rows near 0, for float32 or float16 scores.
* *run state*: a few integers on the device that the kernels of a run share; *stopped*: the kernels
  that are queued change nothing until the host has read the report.
* *report*: what the last kernel of an iteration writes for the host; *status*: a report read back.
* *item*: a data set of a batch; *part*: the rows of one of several devices; *slot*: the place of an
  iteration's centres and report; of scores, with *column block*, a class of columns
  (:mod:`matmul.top_two`).
* *score*: half the squared norm of a centre less its product with a row; *norm*, *residual*: bounds
  of what is stored in half precision, and of what rounding leaves out; *limit*: the score that no
  nearest centre exceeds; *certified*: a row whose second-best score is above its limit;
  *ambiguous*: any other row, which is rechecked by D; *candidates*: the few centres that can be
  nearest to an ambiguous row; *unresolved*: an ambiguous row without a list of candidates.
* *packed*: centres as a scan reads them, or the best two scores of a row in one integer;
  *resident*: centres that a multiprocessor keeps, or programs that are all on the device at once;
  the attribute *wide* of rows: the type of the centres, float32 or float64.
* *pruned*: a row that keeps its label by its bounds; *active*: a row that is scored.
* *lag*: how many iterations the host may be behind the device; *unchecked*: the host has yet to
  check what the device found about the rows of a run.

After the first iteration, in which it may wait for the grid, the host never waits inside one.  An
iteration with few features is four recorded kernels; with more features it is five where all
centres take little memory, up to a dozen otherwise.
Kernels that are queued past the end of a run, or past an iteration with empty clusters, read the
run state and change nothing.
"""
