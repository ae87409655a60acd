"""What watchers see of stages, and that nobody else pays for it."""

from __future__ import annotations

import io

import numpy as np
import pytest

from lloydia import KMeans, kmeans_plusplus
from lloydia.data.formats.opening import followed
from lloydia.metrics import silhouette_score
from lloydia.progress.stages import Stage, stage, steps, watch_stages
from tight import for_fit, tight


def seen_in(work):
    """Return what each stage was at each call, and the result."""
    seen = []

    def watcher(one):
        done = one.done if one.position is None else one.position()
        seen.append((one.name, done, one.total, one.is_over))

    with watch_stages(watcher):
        result = work()
    return seen, result


def test_without_a_watcher_a_loop_runs_over_the_items_themselves():
    items = [1, 2]
    assert steps("blocks", items) is items


def test_the_steps_of_a_loop():
    seen, items = seen_in(lambda: list(steps("blocks", "ab", before=1)))
    assert items == ["a", "b"]
    assert seen == [
        ("blocks", 1, 3, False),
        ("blocks", 2, 3, False),
        ("blocks", 3, 3, False),
        ("blocks", 3, 3, True),
    ]


def test_a_stage_is_over_after_an_error():
    def work():
        for _ in steps("blocks", "ab"):
            raise RuntimeError

    seen = []
    with pytest.raises(RuntimeError), watch_stages(lambda one: seen.append(one.is_over)):
        work()
    assert seen == [False, True]


def test_a_stage_may_have_a_position():
    seen, _ = seen_in(lambda: stage("tiles", 9, position=lambda: 4).__enter__())
    assert seen[0] == ("tiles", 4, 9, False)


def test_stages_are_told_apart_by_what_they_are_of():
    assert Stage("blocks", 3) != Stage("blocks", 3)


X = np.random.default_rng(0).normal(size=(600, 3))


@pytest.mark.parametrize("n_features", [3, 12])
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("init", ["k-means++", "farthest", "k-means||"])
def test_a_watched_start_has_the_same_centres(init, device, n_features, monkeypatch):
    from lloydia.backends.cpu.seeding import seeder

    monkeypatch.setattr(seeder, "MAX_DISTANCES", 0)
    rows = np.random.default_rng(1).normal(size=(300, n_features))
    model = KMeans(9, init=init, random_state=0, max_iter=1, device=device)
    seen, watched = seen_in(lambda: model.fit(rows).cluster_centers_)
    assert (watched == model.fit(rows).cluster_centers_).all()
    of_centers = [done for name, done, total, over in seen if name == "centers" and not over]
    assert of_centers == list(range(1, 10))
    rounds = [done for name, done, total, over in seen if name == "rounds" and not over]
    assert rounds == (list(range(6)) if init == "k-means||" else [])


def test_few_rows_are_seeded_in_one_call_unless_it_takes_long(monkeypatch):
    from lloydia.backends.cpu.seeding import seeder

    at_once, quick = seen_in(lambda: kmeans_plusplus(X, 8, random_state=0)[1])
    assert at_once == []
    monkeypatch.setattr(seeder, "MAX_DISTANCES", len(X) * 7 * 4 - 1)
    stepwise, slow = seen_in(lambda: kmeans_plusplus(X, 8, random_state=0)[1])
    assert len(stepwise) == 9
    assert quick.tolist() == slow.tolist()


def test_runs():
    seen, _ = seen_in(lambda: KMeans(3, n_init=4, random_state=0).fit(X))
    assert [done for name, done, total, over in seen if name == "runs"] == [0, 1, 2, 3, 4, 4]


def test_blocks_of_each_pass():
    model = KMeans(3, init="first", max_iter=2, tol=0)
    source = tight(X, for_fit(model), block=100)
    seen, found = seen_in(lambda: model.fit(source).cluster_centers_)
    assert (found == model.fit(X).cluster_centers_).all()
    passes = [done for name, done, total, over in seen if name == "blocks" and over]
    # Besides the passes, a few blocks are read for the first rows.
    assert passes.count(6) >= 4


def test_the_tiles_of_a_silhouette():
    labels = np.arange(600) % 3
    seen, score = seen_in(lambda: silhouette_score(X, labels))
    assert score == silhouette_score(X, labels)
    (name, first, total, _), (_, last, _, over) = seen
    assert (name, first, last, over) == ("tiles", 0, total, True)


def test_the_bytes_of_a_file(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"x" * 1000)
    with path.open("rb", buffering=0) as stream:

        def work():
            with followed(stream):
                stream.read(300)

        seen, _ = seen_in(work)
    assert seen == [("bytes", 0, 1000, False), ("bytes", 300, 1000, True)]
    with followed(io.BytesIO(b"abc")):
        pass
