"""
Many small data sets at once
============================

``k_means_batched`` clusters many data sets of the same shape in one call. Each data set, a member
of the batch, gets the result of its own fit. On a GPU the members are computed together.

This example cuts a photograph into tiles and finds a palette for each tile.
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
# One call clusters all tiles, with three colours each.

centers, labels, inertia, n_iter = k_means_batched(tiles, 3, random_state=0)
painted = centers[np.arange(len(tiles))[:, None], labels]

# %%
# The result of a member is that of its own fit. With the seed s, member b gets the seed s + b.

alone = KMeans(3, random_state=7).fit(tiles[7])
assert np.array_equal(alone.cluster_centers_, centers[7])
assert np.array_equal(alone.labels_, labels[7])

# %%
# The picture compares three colours per tile with three colours for the whole photograph.

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
