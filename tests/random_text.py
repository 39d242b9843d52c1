"""Random strings that reach every rule of the pretokenizer patterns."""

from __future__ import annotations

import random

CODE_POINTS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CONTRACTION_LETTERS = "sdmtlvreSDMTLVRE\u017f"


def random_strings(alphabet: list[str], count: int, seed: int, share: float = 0.15) -> list[str]:
    """Short strings in which runs, contractions and white space are common; a share of the pieces is the alphabet's."""
    draw = random.Random(seed)
    common = [*"aB  \n\r\t1'!/\u0301\u00aa\u01c5é中\u0085\u001cか・\u3097\u3099゛龥€_\ue000\x00½٣\u3000"]
    strings = []
    for _ in range(count):
        pieces = []
        for _ in range(draw.randrange(1, 12)):
            kind = draw.random()
            if kind < share:
                pieces.append(draw.choice(alphabet))
            elif kind < share + (1 - share) * 0.8:
                pieces.append(draw.choice(common) * draw.choice([1, 1, 1, 2, 3]))
            else:
                pieces.append("'" + draw.choice(CONTRACTION_LETTERS) + draw.choice(["", *CONTRACTION_LETTERS]))
        strings.append("".join(pieces))
    return strings
