"""Rows that exceed the memory of a GPU: blocks of them are sent while others are worked on.

:mod:`group` is all blocks of a GPU, :mod:`room` divides its memory, :mod:`blocks` is a block as a
part.  :mod:`sending` brings its rows, in the type that :mod:`transfer_dtype` finds; :mod:`counted`
is what they count.  :mod:`listed` is an iteration over rows that are there in half precision only:
the others are :mod:`gathered`.
"""
