r"""Filtering: boxes of neighbouring rows, and the centres that can be nearest to a row in a box.

After Kanungo et al. 2002, "An efficient k-means clustering algorithm: analysis and implementation",
IEEE TPAMI 24(7).  The rows are ordered once along a space-filling curve.  TILE neighbours form a
*tile*, FAN neighbouring tiles form a *node*, FAN of these nodes form a node above, and so on.  Each
has a box that contains its rows.  All centres are candidates at the roots.  A node rules out
candidates and passes the others on to its children.  A single remaining candidate owns all rows of
the node.

**When a centre is ruled out.**  Let the box be ``|x_f - m_f| <= h_f``, and z the candidate nearest
to m.  For another one, c, the difference of squared distances is linear in x, so over the box

    |x - c|^2 - |x - z|^2  >=  |m - c|^2 - |m - z|^2 - 2 G,    G = sum_f h_f |c_f - z_f|

(Kanungo's test of the corner farthest towards c).  Labels are defined by canonical D, off by a
factor of at most ``1 +- r``, r = :func:`lloydia.exact.distance.relative_error`.  With
``U = sum_f (|m_f - z_f| + h_f)^2``, which bounds ``|x - z|^2``, D(x, z) < D(x, c) for every x in
the box, strictly, if ``|x - c|^2 - |x - z|^2 > 2 r U / (1 - r)``.  The computed ``|m - c|^2`` and
``|m - z|^2 <= U`` are off by a factor ``1 +- r`` as well, and so is 2 G, which does not exceed the
first if the test succeeds.  So it is enough that

    (1 - 4 r) |m - c|^2  >  |m - z|^2 + 2 G + 8 r U + 2**-960

in computed numbers: r |m - c|^2 for its own error, r for that of 2 G, the rest for the additions.
The last term covers underflow: if squares are subnormal, nothing is ruled out.  z itself is never
ruled out, nor is a centre at equal distance, so ties go to the lowest index.

**What is stored.**  For a node with one owner, only the index of the owner is stored.  If the owner
is the same in the next iteration, neither the rows nor the labels of the node are read.  If it has
changed, the known sums of the node move from one cluster to the other as a whole.  Labels are
written only for tiles with several owners.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms.geometry import Padding

__all__ = ["FAN", "MAX_FEATURES", "MIXED", "TILE", "Filtering", "sizes"]

TILE = 64
FAN = 8

# The largest number of roots, at which the search begins: a few for each thread.
MAX_ROOTS = 128

# Kernels are compiled for each number of features, and boxes of more features rule out very little.
MAX_FEATURES = 256

# The owner of a node whose rows have different labels.
MIXED = -2


def sizes(n_samples: int) -> NDArray[np.int64]:
    """Return the number of tiles, of nodes above them, and so on up to the roots."""
    out = [-(-n_samples // TILE)]
    while out[-1] > MAX_ROOTS:
        out.append(-(-out[-1] // FAN))
    return np.array(out, dtype=np.int64)


class Filtering:
    """The owners of the nodes, and the labels of the tiles that have several.

    Attributes
    ----------
    owner : ndarray of shape (n_nodes,), int32
        The label of all rows of a node (-1 before the first assignment), or MIXED if its children
        have different owners.  Tiles come first, then the levels above.
    tile_labels : ndarray of shape (n_tiles * TILE,), int32
        Labels in the order of the curve, valid if a tile and all nodes above it are MIXED.
    known : bool
        Whether these attributes hold the current labels of the run.
    """

    def __init__(self, n_samples: int, k: int, padding: Padding) -> None:
        levels = sizes(n_samples)
        self.owner = np.full(levels.sum(), -1, dtype=np.int32)
        self.tile_labels = np.empty(levels[0] * TILE, dtype=np.int32)
        self.known = False
