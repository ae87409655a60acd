"""Commands for pictures.

:mod:`segment` and :mod:`quantize` are the commands.  :mod:`segment_files` writes the files of the
first, :mod:`display` shows its result, :mod:`photo` draws two pictures side by side, and
:mod:`pictures` has the options that both commands share.
"""
