"""Colour quantisation by Lloydia and other libraries: the same photographs and numbers of colours.

All contenders get the RGB pixels in memory and return the picture in at most k colours, without
dithering.  They take turns, in one process with the same number of threads, after a first run that
does not count.  A contender that returns more than k colours has no time.  PSNR and SSIM
(:mod:`lloydia.images.quality`) are of the picture that it returns.
"""
