"""Members of a batch whose iterations are the same launches: kernels are interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans, k_means_batched, stopping
from lloydia.backends import batch_groups, choose
from lloydia.data.arrays import on_host
from table import blobs

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from lloydia.backends.cuda.batched import batch  # noqa: E402
from lloydia.backends.cuda.runtime.launching import place  # noqa: E402


def members(size, n, d, dtype="float32"):
    """Return members that have little in common."""
    X = np.stack([blobs(n, d, dtype, seed=b) for b in range(size)])
    return X * np.array([2.0, 0.125, 1.0, 100.0])[:size, None, None].astype(dtype)


def grouped(X, k=3, empty_stops=True):
    with batch_groups("cuda", X, k, empty_stops) as groups:
        return [sorted(group) for group in groups]


def agree(found, X, **options):
    centers, labels, inertia, n_iter = map(on_host, found)
    for b, rows in enumerate(X):
        one = KMeans(n_init=1, device="reference", **options | {"init": options["init"][b]})
        one.fit(rows)
        assert centers[b].tobytes() == one.cluster_centers_.tobytes()
        assert (labels[b] == one.labels_).all()
        assert (inertia[b], n_iter[b]) == (one.inertia_, one.n_iter_)
    return n_iter


@pytest.mark.parametrize(
    ("n", "stop", "expected", "again"),
    [(24, None, [3, 4, 3], 0), (40, stopping.Labels(0.05), [4, 2, 3], 1)],
)
def test_each_member_ends_when_its_own_fit_does(n, stop, expected, again, monkeypatch, stages):
    X = members(3, n, 10)
    # The end that is queued behind the last iteration is that of all, unless a rule ended some.
    ends, end_again = [], batch.Batch._end_separately
    monkeypatch.setattr(
        batch.Batch, "_end_separately", lambda own: ends.append(own) or end_again(own)
    )
    options = {"init": X[:, :15:7], "max_iter": 4, "stop": stop}
    n_iter = agree(k_means_batched(X, 3, device="cuda", **options), X, n_clusters=3, **options)
    assert n_iter.tolist() == expected
    assert len(ends) == again


def test_starts_that_are_on_the_device_are_used_there(device):
    X = members(2, 24, 9)
    rows = torch.as_tensor(X, device=device)
    found = k_means_batched(rows, 3, init=rows[:, :3], max_iter=1)
    agree(found, X, n_clusters=3, init=X[:, :3], max_iter=1)
    with pytest.raises(ValueError, match="contains NaN"):
        k_means_batched(rows, 3, init=rows[:, :3] * torch.nan)


def test_members_are_assigned_to_known_starts_at_once(device, monkeypatch):
    X = members(4, 24, 9)
    rows = torch.as_tensor(X, device=device)
    began, begin = [], batch.Batch._begin
    monkeypatch.setattr(batch.Batch, "_begin", lambda own: began.append(own) or begin(own))
    options = {"init": X[:, :3], "max_iter": 2}
    agree(k_means_batched(rows, 3, init=rows[:, :3], max_iter=2), X, n_clusters=3, **options)
    assert not began
    # Members that need more limbs are another batch, which puts its starts in place itself.
    X[1, 5] = X[3, 5] = 2.0**-60
    rows = torch.as_tensor(X, device=device)
    agree(k_means_batched(rows, 3, init=rows[:, :3], max_iter=2), X, n_clusters=3, **options)
    assert len(began) == 2


def test_a_member_whose_start_is_not_finite_is_in_no_group(device):
    rows = torch.as_tensor(members(3, 24, 9), device=device)
    starts = rows[:, :3].clone()
    starts[2, 1, 4] = torch.nan
    with batch_groups("cuda", rows, 3, True, starts) as groups:
        assert [sorted(group) for group in groups] == [[0, 1]]
    with pytest.raises(ValueError, match="contains NaN") as caught:
        k_means_batched(rows, 3, init=starts)
    assert caught.value.__notes__ == ["This is member 2 of the batch."]


@pytest.mark.parametrize("empty", ["relocate", "keep"])
def test_a_member_with_empty_clusters_disturbs_no_other(empty, monkeypatch):
    X = members(2, 24, 10, "float64")
    init = X[:, :3].copy()
    init[1, 2] = 1e6
    together_with = []
    launch = batch.Batch.launch

    def counted(self):
        together_with.append(self.rows.batch_size)
        launch(self)

    monkeypatch.setattr(batch.Batch, "launch", counted)
    options = {"init": init, "max_iter": 1, "empty": empty}
    agree(k_means_batched(X, 3, device="cuda", **options), X, n_clusters=3, **options)
    assert set(together_with) == {2}


def test_which_members_are_fitted_together(monkeypatch):
    X = members(4, 24, 9)
    assert grouped(X) == [[0, 1, 2, 3]]
    assert grouped(X[:1]) == []
    assert grouped(X[:, :, :8]) == []
    wide = X.copy()
    wide[1, 5] = wide[3, 5] = 2.0**-60
    assert sorted(grouped(wide)) == [[0, 2], [1, 3]]
    wide[3] = X[3]
    assert grouped(wide) == [[0, 2, 3]]
    wide[0, 3, 1] = np.inf
    assert grouped(wide) == [[2, 3]]
    assert batch.largest_batch(X, 3, place("cuda"), copied=True) == 4
    monkeypatch.setattr(batch, "free_bytes", lambda device, needed: needed // 2)
    assert grouped(X) == [[0, 1], [2, 3]]
    monkeypatch.setattr(batch, "free_bytes", lambda device, needed: needed // 4)
    assert grouped(X) == []


def test_what_a_member_knows_of_its_rows():
    X = members(3, 30, 9)
    with batch_groups("cuda", X, 3, True) as groups:
        (group,) = groups
    for b, member in group.items():
        own = choose("cuda", X[b], None, None)
        assert (member.magnitudes().largest == own.magnitudes().largest).all()
        assert (member.data.grid.exponents == own.data.grid.exponents).all()
        member.start(X[b, :3], "lloyd")
        asked = member.iterate(False)
    asked.begin()
    for b, member in group.items():
        assert member.mean_variance() == choose("cuda", X[b], None, None).mean_variance()
