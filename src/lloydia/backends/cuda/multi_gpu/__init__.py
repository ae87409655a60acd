"""Several GPUs of one host: :mod:`part` is the engine of one, :mod:`gpus` iterates all in step."""
