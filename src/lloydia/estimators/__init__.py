"""The estimators and functions that users call, and what they share.

:mod:`kmeans` and :mod:`minibatch` are the estimators; :mod:`functions` are scikit-learn's functions
and ``assign()``; :mod:`batched` fits many data sets of one shape.  :mod:`base` is what estimators
share: rows and starts before a fit, and what centres do after it; :mod:`blockwise` is that of Dask
collections, block by block.  Dask's estimator is :mod:`lloydia.dask`, where users import it.
"""
