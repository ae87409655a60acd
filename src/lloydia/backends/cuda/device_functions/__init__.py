"""Functions that kernels call, and the layout of what kernels share.

* :mod:`exact_numbers` and :mod:`significands`: products and quotients without an error;
  :mod:`lane_sums`: integer sums in registers; :mod:`ranks`: which number is the m-th.
* :mod:`barrier` (all CTAs of a launch wait for each other), :mod:`prefetch`, :mod:`feature_loads`,
  :mod:`fp16_scores` (scores of half-precision rows and centres).
* :mod:`run_state`: where an iteration stands, in a few integers on the device;
  :mod:`iteration_report`: what the host reads of it.
"""
