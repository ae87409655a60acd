"""
Handwritten digits
==================

Each of the 1,797 pictures of digits that come with scikit-learn has 8 x 8 grey values: a row of
64 features. k-means does not use the digits that the pictures show. Nevertheless its centres look
like digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lloydia import KMeans

digits = load_digits()
model = KMeans(n_clusters=10, n_init=10, random_state=0).fit(digits.data)
print(f"inertia {model.inertia_:,.0f} after {model.n_iter_} iterations")

# %%
# A centre is the mean of the pictures in its cluster, so it is a picture itself.

figure, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for j, ax in enumerate(axes.flat):
    ax.imshow(model.cluster_centers_[j].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"cluster {j}: {np.sum(model.labels_ == j)} pictures", fontsize="small")
    ax.set_axis_off()

# %%
# This table counts how clusters and digits correspond: each column is a cluster, each row a digit.

table = np.zeros((10, 10), dtype=int)
np.add.at(table, (digits.target, model.labels_), 1)
order = np.argsort(table.argmax(axis=0), kind="stable")

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.imshow(table[:, order], cmap="Blues")
for digit in range(10):
    for column, j in enumerate(order):
        if count := table[digit, j]:
            color = "white" if count > 90 else "black"
            ax.text(column, digit, str(count), ha="center", va="center", color=color)
ax.set_xticks(range(10), [str(j) for j in order])
ax.set_yticks(range(10))
ax.set_xlabel("cluster")
ax.set_ylabel("digit")
