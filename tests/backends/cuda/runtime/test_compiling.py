"""Threads that compile kernels, and the hashes by which kernels are found on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import pytest
from triton.compiler import code_generator

from lloydia.backends.cuda.runtime import compiling
from lloydia.backends.cuda.runtime.compiling import Compilers

HASHES = """
import random, sys
from lloydia.backends.cuda.matmul import candidates, certify, recheck_pairs, scan
from lloydia.backends.cuda.update import means
from lloydia.backends.cuda.runtime.compiling import hash_callees_first

kernels = [
    candidates.candidates_kernel, certify.certify_kernel, recheck_pairs.recheck_pairs_kernel,
    scan.scan_kernel, means.finish_kernel,
]
names = [kernel.fn.__name__ for kernel in kernels]
order = list(range(len(kernels)))
random.Random(int(sys.argv[1])).shuffle(order)
for i in order:
    hash_callees_first(kernels[i])
print([(name, kernel.cache_key) for name, kernel in zip(names, kernels)])
"""


@pytest.mark.slow
def test_hashes_do_not_depend_on_which_kernel_comes_first():
    environment = {name: x for name, x in os.environ.items() if name != "TRITON_INTERPRET"}
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", HASHES, seed], stdout=subprocess.PIPE, env=environment
        )
        for seed in "12"
    ]
    found = {program.communicate(timeout=120)[0] for program in programs}
    assert len(found) == 1
    assert found.pop().count(b"kernel") == 5


def test_works_are_done_side_by_side_and_threads_end():
    compilers, meeting = Compilers(3), threading.Barrier(3, timeout=10)
    futures = [compilers.submit(meeting.wait) for _ in range(6)]
    assert sorted(future.result(10) for future in futures) == [0, 0, 1, 1, 2, 2]
    for thread in threading.enumerate():
        if thread.name == "lloydia-compiler":
            thread.join(10)
    assert compilers.running == 0


def test_an_error_is_raised_for_who_waits():
    def fail():
        raise ValueError("a kernel")

    with pytest.raises(ValueError, match="a kernel"):
        Compilers(1).submit(fail).result(10)


@pytest.mark.slow
def test_a_process_ends_while_much_is_to_be_compiled():
    program = (
        "from lloydia.backends.cuda.runtime.compiling import Compilers\n"
        "from time import sleep\n"
        "compilers = Compilers(1)\n"
        "for _ in range(1000): compilers.submit(lambda: sleep(0.2))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_the_filters_of_warnings_stay_the_process_s(monkeypatch):
    monkeypatch.setattr(code_generator, "warnings", warnings, raising=False)
    compiling.keep_warning_filters()
    before = [*warnings.filters]
    with code_generator.warnings.catch_warnings():
        code_generator.warnings.simplefilter("ignore", DeprecationWarning)
        assert [*warnings.filters] == before
    monkeypatch.delattr(code_generator, "warnings")
    compiling.keep_warning_filters()
    assert not hasattr(code_generator, "warnings")
