"""Several GPUs of one host.

:mod:`part` is the rows of one of them and :mod:`own_run` a run over these; :mod:`threads` asks all
parts, and :mod:`gpus` iterates all in step.
"""
