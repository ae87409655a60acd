"""Colour quantisation beside other libraries: the same photographs, the same number of colours.

All sides get the RGB pixels in memory and return the picture in at most k colours, without
dithering; they take turns, in one process with the same number of threads, each left to run once
before.  A side that returns more than k colours has no time.  PSNR and SSIM
(:mod:`lloydia.images.quality`) are of the picture that it returns.
"""
