"""Device functions that kernels call, and the layout of the memory that kernels share.

* :mod:`exact_numbers` and :mod:`significands`: products and quotients with their rounding errors;
  :mod:`lane_sums`: integer sums in registers; :mod:`ranks`: order statistics.
* :mod:`feature_loads`; :mod:`fp16_scores`: scores of half-precision rows and centres; :mod:`ptx`:
  all that is in inline assembly.
* :mod:`run_state`: the state of a run, a few integers on the device; :mod:`iteration_report`: the
  layout of the report that the host reads back.
"""
