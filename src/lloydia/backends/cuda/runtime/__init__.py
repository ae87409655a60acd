"""Devices, streams and launches, which all other packages of the engine use.

* :mod:`devices` finds GPUs and their free memory; :mod:`own_device` makes an engine's GPU the
  current one; :mod:`driver` calls CUDA's driver; :mod:`hopper` recognises Hopper GPUs.
* :mod:`launching` launches a kernel of Triton, in one of its :mod:`forms`, which :mod:`compiling`
  compiles in parallel and :mod:`loaded_kernels` loads.
* :mod:`recording` records launches and repeats them; :mod:`relocation` repeats those of one fit in
  the memory of another; :mod:`launch_configs` has launches as numbers, which :mod:`launch_loop`
  passes to the driver in one call.
* :mod:`arena` cuts one allocation into tensors; :mod:`upload` and :mod:`async_copy` copy to the GPU
  and back; :mod:`kernel_cache` is where compiled kernels are stored.
"""
