"""Runs over at most 8 features: one persistent kernel does all iterations that are queued.

* :mod:`run` is the state of a run, of a :mod:`shape`, in its :mod:`memory`; :mod:`told` is what the
  host reads of it.
* The first launch measures rows and start (:mod:`grid`).  The next one (:mod:`kernel`) labels rows
  by :mod:`scan`, with :mod:`scores`, :mod:`kept` or :mod:`cells`; :mod:`canonical` decides between
  centres that scores do not tell apart; :mod:`moves` moves rows that changed from sum to sum, and
  :mod:`means` divides the sums.
* Many rows without weights of at most 5 features and 32 clusters: :mod:`summed` does both, by
  :mod:`lists`, with float64 rows stored in float32 by :mod:`stored`.  :mod:`sums` are tables of a
  CTA's own.
* Up to 512 rows stay in the registers of one CTA (:mod:`alone`), and a whole fit may be one launch
  (:mod:`whole`).
"""
