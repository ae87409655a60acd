"""When the kernels of a run do anything: in an iteration, and in the assignment that ends a run."""

from __future__ import annotations

import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import ASSIGNED, STOPPED
from lloydia.backends.cuda.rows.low_cost import DONE

__all__ = ["AT_LIMIT", "ITERATING", "LAST", "is_active"]

# In which of its states (STOPPED) a run does what is queued, a bit each: iterations, while it has
# not stopped; an assignment that follows the last of them, and that which follows where the centres
# moved so little that the run is over.
ITERATING = 1
AT_LIMIT = 1 << ASSIGNED.value
LAST = ITERATING | AT_LIMIT


@triton.jit
def is_active(run_state, cost, states):
    """Return whether a kernel is to run that is queued for some states; after its end no run is."""
    stopped, ended = tl.load(run_state + STOPPED), tl.load(cost + DONE)
    return ((states >> stopped) & 1 != 0) & (ended == 0)
