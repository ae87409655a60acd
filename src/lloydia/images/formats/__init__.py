"""Pictures in files: reading and writing them, and what a file says of their colours.

- :mod:`files` reads and writes pictures; :mod:`indexed` reads animations, and writes pictures and
  animations with a palette.
- :mod:`decoding` has the limits on size, and the errors for damaged files.
- :mod:`colorimetry` has the profiles and the gamma of a picture, and :mod:`embedding` keeps them.
- :mod:`deep` has pictures of 16 bits a channel.
"""
