"""Pickles from before Lloydia's modules moved load, and what they name stays where it was."""

import base64
import pickle
import zlib

import numpy as np
import pytest

import lloydia

# Of Lloydia 0.1.0 with scikit-learn 1.9; compressed, as text.
FITTED = {
    "KMeans": (
        "eNplkttSE0EQhjcBBFbEiEcQD3gMClEUERUlihaWK7lIebF3U7uzE3aLzWz+mVmKXFClF5zexnfwTbz1IXS2"
        "Eyks52IOPT3TX3f/X8s8TbNulAS1rbYIpHa9DVrgzH5DaRflqu86jiMZT3NthNIY8Mr+oDUlMjEY9IfstpUo"
        "bTDknyJPujhFPkFuMgz7I3bbDnZYYj/AyMZcyR+wFpOlGF1fnVr6+Wt6bd4ftqZtocJMC7ie44/ZswpklLWZ"
        "NoERON2gADzrdNkOxg790SJCupmpxMRtnImH6T4S2wkXGLfHUeIxsRJBpHG2QUzaZB1UjtMujp1Ebrqfg1Ck"
        "NvFzNvGJXZwn6pYKuEkyiQvrTn/okHIW7Y7p4iJ5KZFmvEC85I9TyJYITK6EtrVguGwLVinAexVkXMiikAxX"
        "uMzbnW6N8UyJWjtPTRIoFXRdpgTPpDYq58bFZM/NlVHvFlOes4er3D6LBNeukMXGxbRfslFCXKMypIFJ5AKu"
        "7+NGEzcPMNPErapX8speeR+3+19GptuxL+/45SLXZdw9OjzAvSbuV70B+m0F1Uaj8em3HTR5jsFseBRP+zN/"
        "6+FM1Hvrj++r/xrKdTyILcDDJuYM5kNqcUplZqjFkzEl8ii2dI+bWCjoBvfwJO7hJIt4WuAsNvHM4sT/gywR"
        "SKWPUTqx4nkRd7mJFwYvQ+pRIoWy9WV4tV7/8pE8iUeSKhlWbJdckpe0KtwUEcPrQxKhZFFiFSi57SfeeJW+"
        "0fYoFnyrcFy1cnVPipGhTiIhkeEtBerpkuEdiZ93cqwRuy56HWmmhYisDhneH0uNBMxS0TIsa7XwoZGHtT8P"
        "Lw6W"
    ),
    "MiniBatchKMeans": (
        "eNplU8tu00AUddKUpqaU0pbyfhUoKY9AoUCBQkKhDdQkSF55N/JjWlvY41zPuJAipCLRF5/AD7BBiB0Sy0Ti"
        "E9gj8RXdwPU4CRWMZPv62veeO+ecWcvavh82HM8sBh7zLFPYrlrFaC6JtCo1GVdBmXwLmTeQLRiqoiiM2H7M"
        "BY049GhZI4cpLBCQs1kc1BtFYocRLQaxLzwzisyGSiJqh4yLKLaFCr3pbypz0q+wR1PWoc/GMofaXKUsCVTI"
        "GxnsbEG/sQefvik8NgXqBuzVYWAT9ukwWNAyWlbLbsD+dktHNOpYOWRksWJpBg5sb23CsA4jBa1HdpuF0Vqt"
        "tvgbl7xpioCD1rabN8aVf1frSykNxsvdBIy5OMEhHQ4LOGIZecwG5iviIRlwVHMkPZJDwr1VCseqSs7ow9wK"
        "jayQUziuKcYgvtthUI8FJb5pUZ/DiS1jALORyZwwIFyYgsJJ/LUHkyL04VSlM5Qx3IZkIfGCehSu0IAyAac1"
        "1ehvC5Fin6lJ3hiR2oxrGVkaUZNzb5klRSRCTkM4Wym9W/1Z+Tz6WhY4dMWzKZyTupqxCOG87MyIcLHa4TBR"
        "k3tgZImaIo4oRwgCF9AKeZlGa9Q5gYI2JvfOJD0EJvE94Yf8nfGiltJD2lNewimHEnpSfxEbp0SbEbjs9rrS"
        "Jldc1L6ow9Wu9tfckUS/iV3KvZSr9bWrX/Nj89Pki9b75ofWtxJMJRpe1+GGgGlL4tthzATC3OzA3Epgbusw"
        "I2HW4U4KMtxBaK4tlNvBfBnuJg3v6TAr4H7aMCWRwAMpoV2PoSTJxW0zJLfc3ncqP4GHHdy5BPeRDo8T3Nw6"
        "zLupl71pWEi8XNHhCXrZ/d/FT6WLh3axkGlfsJiMp+nwTEA19azHaISHk0CtUtqpLO98//VDlvLknDqccEod"
        "jy0TeN41XmwV/wB7yDdW"
    ),
}  # fmt: skip
ROWS = np.array([[0.0, 1.0], [0.0, 2.0], [9.0, 1.0], [9.0, 2.5]])
# What pickles have named: of classes, of callbacks that an estimator has, of one that resumes.
NAMED = {
    "lloydia.kmeans": ["KMeans"],
    "lloydia.minibatch": ["MiniBatchKMeans"],
    "lloydia.dask": ["KMeans"],
    "lloydia.callbacks": ["Checkpoint"],
    "lloydia.stopping": ["Centers", "Either", "Inertia", "Labels"],
    "lloydia.loop.empty": ["EmptyClusterError"],
    "lloydia.loop.resuming": ["Snapshot"],
    "lloydia.loop.run": ["Halt", "Result"],
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_estimator_loads_and_predicts(name):
    model = pickle.loads(zlib.decompress(base64.b64decode(FITTED[name])))
    assert type(model) is getattr(lloydia, name)
    assert (model.predict(ROWS) == model.labels_).all()
    assert model.fit(ROWS).labels_.shape == (4,)
    assert type(pickle.loads(pickle.dumps(model))) is type(model)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in NAMED.items() for name in names]
)
def test_what_pickles_name_is_there(module, name):
    assert pickle.loads(f"c{module}\n{name}\n.".encode()).__name__ == name
