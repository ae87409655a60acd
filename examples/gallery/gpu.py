"""
Tensors on a GPU
================

An array on a GPU is clustered there: torch tensors, CuPy arrays, cuDF frames and other arrays
that support DLPack. This program needs an NVIDIA GPU, so this page shows no output.
"""

# sphinx_gallery_thumbnail_path = "../benchmarks/results/nvidia-h200/peers-fits.png"
import numpy as np
import torch

from lloydia import KMeans, k_means_batched

# %%
# A tensor on the GPU is read in place, and the results are tensors on the same GPU.

X = torch.randn(1_000_000, 64, device="cuda")
model = KMeans(n_clusters=256, random_state=0).fit(X)
print(model.labels_.device, model.cluster_centers_.shape)

# %%
# The CPU gives the same result, to the last bit.

on_cpu = KMeans(n_clusters=256, random_state=0).fit(X.cpu().numpy())
assert np.array_equal(on_cpu.labels_, model.labels_.cpu().numpy())
assert on_cpu.inertia_ == model.inertia_

# %%
# ``device="cuda"`` copies a CPU array to the GPU, and the results back. Rows that do not fit on the
# GPU are sent in blocks.

on_host = KMeans(n_clusters=256, random_state=0, device="cuda").fit(X.cpu().numpy())
print(type(on_host.labels_))

# %%
# Several GPUs of one machine share the rows.

several = KMeans(n_clusters=256, random_state=0, device="cuda:all").fit(X)

# %%
# Many data sets of one shape are clustered together.

centers, labels, inertia, n_iter = k_means_batched(X.view(64, 15_625, 64), 32, random_state=0)
