"""The GPU engine: Triton kernels over rows on the device.

Where to look:

* A fit enters by :class:`engine.CUDA`; what is launched is chosen in ``LowRun._queue`` and
  ``TensorRun.launch``, by ``TensorScan`` and ``Moving.queue``.
* The engine: :mod:`engine`, and :mod:`beginning`, how its runs begin; :mod:`gridded` (what is known
  of rows), :mod:`placed` (rows in their place), :mod:`extent`, :mod:`upload`, :mod:`devices`,
  :mod:`own_device`; :mod:`spread` (by which runs may end); :mod:`flow` and :mod:`reports` (what the
  kernels of a run tell each other, and the host), :mod:`ending` (the inertia, and which labels
  occur), :mod:`fetching`, :mod:`recording`, :mod:`launching`.
* A run over few features: :mod:`low_run`, of a :mod:`low_shape`, in its :mod:`low_memory`;
  :mod:`low_told` is what the host reads of it. One launch finds the grid (:mod:`low_grid`), the
  frame (:mod:`low_frame`) and whether the start is finite, the next does all iterations that are
  queued (:mod:`low_kernel`).  There :mod:`low_scan` labels rows by :mod:`low_scores`,
  :mod:`low_kept` or :mod:`low_cells`, those in doubt by :mod:`low_canonical`, and :mod:`low_moves`
  moves those that changed from sum to sum.  Of many rows without weights, of at most 5
  features and 32 clusters (:func:`low_sums.is_summed`), :mod:`low_summed` does both, by
  :mod:`low_lists`, with float64 rows stored in float32 by :mod:`low_stored`.  Where there is room,
  either adds to a program's own table first (:mod:`low_sums`, in a :mod:`shared_table`).
  :mod:`low_means`, :mod:`prefetch` and :mod:`barrier` serve both.  The last launch adds up
  the inertia and writes what all have found to the host's memory (:mod:`low_cost`).  Few features
  are at most 8.  Up to 512 rows stay in the registers of one program (:mod:`low_alone`); without a
  limit, which a tolerance sets, these first launches are then one (:mod:`low_whole`).
* A run over more features: :mod:`tensor_run`, in its :mod:`tensor_memory`, from a :mod:`starting`
  point, with the grid by :mod:`found_grid`. :mod:`half_rows` and :mod:`half_centers` store rows and
  centres in half precision, in a frame that :mod:`half_frame` chooses (by :mod:`packing`: of few
  centres :mod:`means` does it at the end of an iteration, for the next), :mod:`tensor_scan` scores
  them on matrix units (:mod:`half_scores`) by :mod:`two_least` (of at most 64 features and 256
  centres :mod:`resident_scan`, by :mod:`grid_least`, on Hopper in Gluon: :mod:`hopper_scan`; of
  many features :mod:`wide_scan`), and the :mod:`judge` says, by :mod:`limits`, what the scores
  prove (why: :mod:`lloydia.exact.half_certificate`). Which centre a row in doubt has,
  :mod:`contest` decides by D to all, where all take little memory; otherwise :mod:`candidates`
  names the few that it can have, :mod:`duel` decides between them, and :mod:`settle` is for the
  rest of many centres; :mod:`row_lists`, :mod:`ranks`. Late in a long run :mod:`pruning` leaves out
  the rows whose labels their :mod:`bounds` tell: :mod:`fastest`, :mod:`spared`, :mod:`due`.
* Their centres, and those of batches: :mod:`moving` has what changed added up, by
  :mod:`table_sums` in a :mod:`shared_table` (:mod:`table_layout`, :mod:`table_banks`,
  :mod:`later_limbs`); of many clusters or features, or with weights, by :mod:`moves`, when
  :mod:`entries` has sorted it; :mod:`sums` has the grid; :mod:`significands` makes numbers of sums,
  here and in :mod:`low_means`; :mod:`means` divides them, and ends the iteration with its report;
  :mod:`exact_numbers`.
* Batches: :mod:`member` is an engine for one of them, :mod:`batch` iterates all in the same
  launches, :mod:`batch_rows` holds their rows, :mod:`batch_run` their state; :mod:`lanes` are the
  streams of those that have launches of their own. To every kernel of an iteration a data set by
  itself is a batch of one.
* Several GPUs: :mod:`part` is the engine as one of several, :mod:`gpus` asks them and iterates all
  in step, :mod:`all_reduce` is what they tell each other.
* Rows that do not fit: :mod:`out_of_core` is the group of a GPU's blocks, :mod:`room` divides its
  memory, :mod:`blocks` is a block as a part, :mod:`sending` brings its rows, in the type that
  :mod:`narrow` finds, :mod:`counted` what they count; :mod:`listed` is an iteration of rows that
  are there in half precision only.
* Distances and inertia: :mod:`distances`, :mod:`totals`, :mod:`lane_sums`; :mod:`distinct` labels.
* Seeding: :mod:`picks`, :mod:`weighing`, :mod:`oversampling`; empty clusters: :mod:`donors`.
* The host's part of short fits: :mod:`plans` (what was launched before), :mod:`series` and
  :mod:`driver` (launches as numbers), :mod:`pieces` (memory).
* Where compiled kernels are stored: :mod:`kernel_cache`.

Words:

* *D*: the squared distance as the contract defines it; *extent*: the largest and the smallest
  magnitude of each feature.
* *grid*: the powers of two that the numbers of each feature are multiples of in exact sums
  (:mod:`lloydia.exact.sums`); *limb*: one of the integers of such a sum; *lattice*: a grid on the
  device.
* *frame*: the shift and the scale by which rows become small numbers near 0, for float32 or float16
  scores.
* *flow*: the few integers by which the kernels of a run steer each other; *halted*: what is queued
  does nothing until the host has looked.
* *told*: what kernels have written for the host; of a scan, what it has found of each row, for the
  judge.  *desk*: where the programs of one launch meet; in :mod:`hopper_scan`, where the threads of
  a group leave what they have found.
* *member*: a data set of a batch; *part*: the rows of one of several devices; *slot*: where an
  iteration's centres and report are kept; of scores, with *cell*, a class of columns
  (:mod:`two_least`).
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
