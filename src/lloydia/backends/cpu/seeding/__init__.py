"""k-means++ and k-means|| on the processor.

:mod:`seeder` holds the state of a seeding; :mod:`weights` draws rows from it.  Three modules say by
how much candidates lower the sum of weight times D: :mod:`low_potentials` (few features),
:mod:`wide_potentials` (many; :mod:`screen` rules out rows) and :mod:`sparse_potentials`.  A long
seeding makes a :mod:`sketch` of each row, whose unit :mod:`sketch_frame` chooses, whose directions
:mod:`sketch_directions` finds, and whose bytes :mod:`sketch_bytes` writes: :mod:`sketched`
evaluates the pairs that it cannot exclude, and :mod:`sketched_potentials` decides when that pays.
:mod:`gains` finds the best candidate by distances in float32.
:mod:`greedy` seeds few rows in one kernel, :mod:`oversampling` is k-means||, and :mod:`protocols`
is the seeder as its parts see it.
"""
