"""Several GPUs of one host: :mod:`part` is one GPU's part, :mod:`gpus` iterates all in step."""
