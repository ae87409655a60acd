"""
The colours of a photograph
===========================

k-means finds k colours that represent a photograph well. The colours depend on the colour space in
which distances are measured. This example paints one photograph in eight colours, found in three
colour spaces.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from lloydia.images import segment

pixels = load_sample_image("china.jpg")

# %%
# ``segment`` clusters the colours of all pixels. In RGB, equal distances do not look equally
# different. Oklab, the default, and Lab are made so that they do.

spaces = ["RGB", "Lab", "Oklab"]
found = {space: segment(pixels, 8, space) for space in spaces}

figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
axes[0, 0].imshow(pixels)
axes[0, 0].set_title("original")
for ax, space in zip(axes.flat[1:], spaces):
    ax.imshow(found[space].image)
    ax.set_title(f"8 colours found in {space}")
for ax in axes.flat:
    ax.set_axis_off()

# %%
# Only the palette found in Lab keeps the red of the columns. The figure shows it, with the share of
# the pixels that have each colour. ``palette[labels]`` is the picture.

result = found["Lab"]
shares = np.bincount(result.labels.ravel(), minlength=8) / result.labels.size
order = np.argsort(-shares)

figure, ax = plt.subplots(figsize=(9, 1.6), layout="constrained")
left = 0.0
for j in order:
    ax.barh(0, shares[j], left=left, color=result.palette[j] / 255)
    ax.text(left + shares[j] / 2, -0.62, f"{shares[j]:.0%}", ha="center")
    left += shares[j]
ax.set_axis_off()

# %%
# ``xy`` also uses the position of each pixel, so that segments fall into fewer pieces.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
for ax, xy in zip(axes, (0, 1.5)):
    ax.imshow(segment(pixels, 30, xy=xy).image)
    ax.set_title(f"30 segments, xy={xy}")
    ax.set_axis_off()
