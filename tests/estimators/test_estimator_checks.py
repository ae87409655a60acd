from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from lloydia import KMeans, MiniBatchKMeans

pytestmark = pytest.mark.slow

# The two that scikit-learn expects of its own classes: a weight of 2 is not a row twice for a
# seeding that draws row numbers.
EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the seeding draws other rows"
    for kind in ("dense", "sparse")
}
ESTIMATORS = [
    KMeans(n_clusters=2, n_init=2, max_iter=5, algorithm=algorithm)
    for algorithm in ("lloyd", "elkan")  # without bounds and with them
] + [MiniBatchKMeans(n_clusters=2, max_iter=5, batch_size=10)]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED)
def test_estimator_checks(estimator, check):
    check(estimator)
