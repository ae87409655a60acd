"""Lloydia in scikit-learn code: the same pipeline with either library's KMeans.

Run it with ``python examples/swap_import.py``.
"""

from __future__ import annotations

import sklearn.cluster
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydia

wine = load_wine()

for KMeans in (sklearn.cluster.KMeans, lloydia.KMeans):
    pipeline = make_pipeline(StandardScaler(), KMeans(n_clusters=3, n_init=10, random_state=0))
    labels = pipeline.fit_predict(wine.data)
    search = GridSearchCV(pipeline, {"kmeans__n_clusters": [2, 3, 4]}, cv=3).fit(wine.data)
    print(
        f"{KMeans.__module__.partition('.')[0]:8}"
        f"  inertia {pipeline[-1].inertia_:.6f}"
        f"  agreement with the cultivars {adjusted_rand_score(wine.target, labels):.3f}"
        f"  cross-validated k {search.best_params_['kmeans__n_clusters']}"
    )
