"""Rows that exceed the memory of a GPU: blocks are sent while others are computed.

:mod:`group` has all blocks of a GPU, :mod:`room` divides its memory, :mod:`blocks` is a block as a
part.  :mod:`sending` sends its rows, in the type that :mod:`transfer_dtype` finds; :mod:`counted`
adds up counts.  :mod:`listed` is an iteration over rows of which only the half-precision copy is on
the GPU: the rows that it needs are :mod:`gathered`.
"""
