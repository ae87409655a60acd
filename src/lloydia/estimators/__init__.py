"""The estimators and functions that users call, and what they share.

:mod:`kmeans` and :mod:`minibatch` are the estimators; :mod:`functions` are scikit-learn's functions
and ``assign()``; :mod:`batched` fits many data sets of one shape, which :mod:`batch_arguments`
checks.

What they share: :mod:`rows` checks rows, :mod:`starts` checks and makes starts, :mod:`given` is all
that a fit is given, and :mod:`runs` are the runs of a fit.  :mod:`base_kmeans` has the methods of a
fitted estimator; :mod:`blockwise` is those of Dask collections, block by block.  Dask's estimator
is :mod:`lloydia.dask`, where users import it.
"""
