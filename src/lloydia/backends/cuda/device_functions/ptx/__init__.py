"""All inline assembly (PTX), and portable code that does the same.

A function takes the assembly if :data:`runtime.launching.COMPILED` is true, and the portable code
otherwise.  That is for the interpreter and, except in :mod:`shared_table`, for other GPUs.

* :mod:`barrier`: all CTAs of a launch wait for each other; :mod:`vector_loads`: loads of four
  numbers.
* :mod:`selection`: the least and the largest of three numbers, and numbers with names.
* :mod:`shared_table`: a table of integers in shared memory; :mod:`limb_overflow`: what its limbs
  leave of a number; :mod:`warp_lists`: lists that each warp fills by itself.
"""
