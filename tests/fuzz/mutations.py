"""Small deterministic damage to bytes, for a fuzzer that needs nothing but Python."""

from __future__ import annotations

import random

__all__ = ["damaged"]


def damaged(data: bytes, random: random.Random) -> bytes:
    """Return the bytes with one to four changes: flipped, cut, removed, repeated or put in."""
    values = bytearray(data)
    for _ in range(random.randint(1, 4)):
        if not values:
            break
        at = random.randrange(len(values))
        length = random.choice((1, 1, 2, 4, 16))
        match random.randrange(6):
            case 0:
                values[at] ^= 1 << random.randrange(8)
            case 1:
                values[at : at + length] = random.randbytes(length)
            case 2:
                del values[at:]
            case 3:
                del values[at : at + length]
            case 4:
                values[at:at] = values[at : at + length] * random.randint(1, 3)
            case 5:
                values[at : at + length] = random.choice(INSERTIONS)
    return bytes(values)


# What has broken readers before.
INSERTIONS = (
    *(b"", b"\x00", b"\xff" * 4, b"\xff" * 8, b"\x80\x00\x00\x00", b"-1", b"1e400", b"nan", b"inf"),
    *(b'"', b'""', b"'", b",", b";", b"\t", b"\r", b"\n", b"\r\n", b"#", b"_", b"1_0", b"0x1p3"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", "\u0661".encode(), "\u2028".encode(), b"\x1b[31m", b"[red]"),
)
