"""Threads that compile kernels, and the hashes by which kernels are found on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from triton.compiler import code_generator

from lloydia.backends.cuda.runtime import compiling, forms
from lloydia.backends.cuda.runtime.compiling import Compilers
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel

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


def test_without_another_thread_the_work_is_done_at_once(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    compilers = Compilers(1)
    assert [compilers.submit(lambda i=i: i).result(1) for i in range(3)] == [0, 1, 2]
    assert compilers.running == 0


def test_threads_are_no_daemons_even_if_the_caller_is_one():
    # The end of the process would stop a daemon amid a kernel.
    found = []
    caller = threading.Thread(
        target=lambda: found.append(Compilers(1).submit(threading.current_thread).result(10)),
        daemon=True,
    )
    caller.start()
    caller.join(10)
    assert [thread.daemon for thread in found] == [False]


def test_a_thread_keeps_its_gpu_when_it_compiles_for_another(monkeypatch):
    # As where the process may have no more threads.
    here = [0]

    @contextmanager
    def device(number):
        here.append(number)
        yield
        here.pop()

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: here[-1])
    monkeypatch.setattr(torch.cuda, "set_device", here.append)
    monkeypatch.setattr(compiling, "hash_callees_first", lambda kernel: None)
    monkeypatch.setattr(LoadedKernel, "load", lambda compiled, device: (compiled, device))
    kernel = SimpleNamespace(warmup=lambda grid: here[-1])
    assert compiling.compiled_now(kernel, (), {}, 1) == (1, 1)
    assert torch.cuda.current_device() == 0


def test_a_launch_tries_again_what_failed_in_a_thread(monkeypatch):
    kernel, failed = LoadedKernel(SimpleNamespace(metadata=None)), Future()
    failed.set_exception(MemoryError("the GPU was full"))
    monkeypatch.setattr(forms.Form, "load", lambda form, device: kernel)
    form = forms.Form(test_hashes_do_not_depend_on_which_kernel_comes_first, "key", (), {}, None)
    monkeypatch.setitem(forms._found, (id(form.kernel), "key", 0), failed)
    assert forms.loaded(form, 0) is kernel
    assert forms.loaded(form, 0) is kernel


def test_work_that_is_left_when_the_main_thread_ends_is_cancelled():
    program = (
        "from concurrent.futures import CancelledError\n"
        "from threading import Thread, main_thread\n"
        "from lloydia.backends.cuda.runtime.compiling import Compilers\n"
        "def fit():\n"
        "    main_thread().join()\n"
        "    try: Compilers(1).submit(int).result(20)\n"
        "    except CancelledError: print('cancelled')\n"
        "Thread(target=fit).start()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], timeout=60, capture_output=True, text=True
    )
    assert ended.stdout == "cancelled\n", ended.stderr


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


def test_one_thread_at_a_time_translates(monkeypatch):
    inside, at_once = [], []

    def translate(name, *, seconds):
        inside.append(name)
        at_once.append(len(inside))
        time.sleep(seconds)
        inside.remove(name)
        return name.upper()

    monkeypatch.setattr(code_generator, "ast_to_ttir", translate)
    compiling.translate_one_at_a_time()
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda name: code_generator.ast_to_ttir(name, seconds=0.01), "abcdefgh")
        assert [*found] == [*"ABCDEFGH"]
    assert max(at_once) == 1
