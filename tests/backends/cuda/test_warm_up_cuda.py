"""`lloydia warm-up --device cuda` runs all its fits."""

from __future__ import annotations

from lloydia.cli import main


def test_fits_on_a_gpu(capsys):
    options = ("--device", "cuda", "--shapes", "40,3,2", "--dtype", "float32")
    assert main(["warm-up", *options]) == 0
    main(["warm-up", *options])
    assert "nothing left to compile\ncompiled kernels are in " in capsys.readouterr().out
