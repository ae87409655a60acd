"""
Many small data sets at once
============================

``k_means_batched`` clusters each member of a batch by itself: one call for many data sets of the
same shape. Each gets the result of its own fit. On a GPU the members are computed together.

Here a photograph is cut into tiles, and each tile gets a palette of its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from lloydia import KMeans, k_means_batched

SIDE = 40

pixels = load_sample_image("flower.jpg")
high, wide = (length // SIDE for length in pixels.shape[:2])
tiles = (
    pixels[: high * SIDE, : wide * SIDE]
    .reshape(high, SIDE, wide, SIDE, 3)
    .swapaxes(1, 2)
    .reshape(high * wide, SIDE * SIDE, 3)
    .astype(np.float32)
)
print(f"{len(tiles)} tiles of {tiles.shape[1]:,} pixels")

# %%
# All tiles in one call, three colours each.

centers, labels, inertia, n_iter = k_means_batched(tiles, 3, random_state=0)
painted = centers[np.arange(len(tiles))[:, None], labels]

# %%
# A member's result is that of a fit by itself. A seed s gives member b the seed s + b.

alone = KMeans(3, random_state=7).fit(tiles[7])
assert np.array_equal(alone.cluster_centers_, centers[7])
assert np.array_equal(alone.labels_, labels[7])

# %%
# Three colours a tile, compared with three colours for the whole photograph.

whole = KMeans(3, random_state=0).fit(tiles.reshape(-1, 3))


def picture(colors):
    """Put tiles together again."""
    tiled = colors.reshape(high, wide, SIDE, SIDE, 3).swapaxes(1, 2)
    return tiled.reshape(high * SIDE, wide * SIDE, 3).round().astype(np.uint8)


figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].imshow(picture(whole.cluster_centers_[whole.labels_]))
axes[0].set_title("3 colours for all")
axes[1].imshow(picture(painted))
axes[1].set_title("3 colours for each tile")
for ax in axes:
    ax.set_axis_off()
