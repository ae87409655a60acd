"""The GPU engine: Triton kernels over rows that stay on the device."""
