"""Imports and compilations are not broken off halfway."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba.core import config

from lloydia.backends.cpu.runtime.compiled import kernel
from lloydia.imports import load, uninterrupted


@pytest.fixture(autouse=True)
def handler():
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_takes_effect_at_the_end():
    ended = []

    @uninterrupted
    def work(fails):
        signal.raise_signal(signal.SIGINT)
        ended.append(fails)
        return 1 / (not fails)

    for fails in (False, True):
        with pytest.raises(KeyboardInterrupt):
            work(fails)
    assert ended == [False, True]


def test_without_an_interrupt_it_is_the_function():
    assert uninterrupted(divmod)(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        uninterrupted(divmod)(7, 0)
    # Other threads may not set a handler, and need none.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(uninterrupted(divmod), 7, 2).result() == (3, 1)


def test_a_process_that_ignores_interrupts_goes_on_doing_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert uninterrupted(lambda: signal.raise_signal(signal.SIGINT) or 5)() == 5
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupted_import_is_whole(tmp_path, monkeypatch):
    (tmp_path / "interrupted_library.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        load("interrupted_library")
    assert sys.modules.pop("interrupted_library").whole


def test_an_interrupted_compilation_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @kernel
    def tripled(x):
        return 3 * x

    compiler = tripled._compiler
    compile_whole = compiler.compile

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        return compile_whole(*args)

    monkeypatch.setattr(compiler, "compile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tripled(7)
    assert tripled.signatures
    assert tripled(7) == 21
