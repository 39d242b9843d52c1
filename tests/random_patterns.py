"""Random regular expressions, with constructs that are read and some that are refused, and texts to try them on."""

from __future__ import annotations

import random

LETTERS = "aAbsSkKiIfﬁßſK²½1_é\u0301\n\r -'!.ΣςǅİıʕΐН한😀\u200d\u0085\U000323b0\U0003d000"
PIECES = [
    *LETTERS,
    "aa",
    "ab",
    "ss",
    "SS",
    "ff",
    "st",
    "ʼn",
    "\r\n",
    "\n\n",
    "  ",
    "\x1b",
    "-",
    "]",
    "^",
    "&&",
    "\u0345",
]
PROPERTIES = [
    *[
        "L",
        "N",
        "P",
        "S",
        "M",
        "Z",
        "C",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "Nd",
        "No",
        "Mn",
        "Sc",
        "Sk",
        "Zs",
        "Cc",
        "Cf",
        "Cn",
        "Han",
        "Latin",
        "Greek",
        "Alphabetic",
        "Uppercase",
        "Lowercase",
    ],
    *[
        "White_Space",
        "letter",
        "Upper",
        "lower",
        "punct",
        "word",
        "Word",
        "Any",
        "Other_Letter",
        "Katakana",
        "^L",
        "Emoji",
    ],
    *["Script=Greek", "sc=Latin", "gc=Lu", "digit", "alpha", "space", "xdigit", "decimal number"],
]
POSIX_NAMES = [
    "alnum",
    "alpha",
    "ascii",
    "blank",
    "cntrl",
    "digit",
    "graph",
    "lower",
    "print",
    "punct",
    "space",
    "upper",
    "word",
    "xdigit",
]
POSIX = [
    *POSIX_NAMES,
    "^alpha",
    "^punct",
    "foo",
]
ODD = [
    *[
        r"\e",
        r"\a",
        r"\v",
        r"\f",
        r"\t",
        r"\x41",
        r"\xe9",
        r"\x{e9}",
        r"\u00e9",
        r"\u{e9}",
        r"\U000000e9",
        r"\pL",
        r"\PN",
    ],
    *[
        r"\K",
        r"\G",
        r"\R",
        r"\X",
        r"\N",
        r"\O",
        r"\q",
        r"\<",
        r"\>",
        r"\1",
        r"\0",
        r"\012",
        r"\k<n>",
        r"\-",
        r"\'",
        r"\ ",
    ],
    *["(?x)", "(?s)", "(?m)", "(?i)", "(?-i)", "(?u)", "(?a)", "(?#c)", "(?~a)", "(?<n>a)", "(?P<n>a)", "(?(1)a|b)"],
    *["{", "}", "]", "{a}", "{,", "**", "?+?", "(?", "(?i", "[]a]", "[^]a]", "[a", ")", "\\"],
]


def random_text(draw: random.Random, most: int = 9) -> str:
    return "".join(draw.choice(PIECES) for _ in range(draw.randrange(1, most)))


class Generator:
    """Draws patterns; `oddity` is the share of places with something rare or refused."""

    def __init__(self, draw: random.Random, oddity: float = 0.05) -> None:
        self.draw, self.oddity = draw, oddity

    def pattern(self) -> str:
        flags = self.draw.choice([""] * 6 + ["(?i)", "(?m)", "(?s)", "(?im)"])
        return flags + self.alternatives(self.draw.randrange(1, 4))

    def alternatives(self, depth: int) -> str:
        return "|".join(self.sequence(depth) for _ in range(self.draw.choice([1, 1, 2, 3])))

    def sequence(self, depth: int) -> str:
        return "".join(self.piece(depth) for _ in range(self.draw.choice([0, 1, 1, 1, 2, 2, 3])))

    def piece(self, depth: int) -> str:
        draw = self.draw
        if draw.random() < self.oddity:
            return draw.choice(ODD)
        kind = draw.random()
        if kind < 0.1:
            return draw.choice(["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"])
        if kind < 0.2 and depth:
            opening = draw.choice(["(?=", "(?!", "(?<=", "(?<!"])
            return f"{opening}{self.sequence(0) if opening[2] == '<' else self.alternatives(depth - 1)})"
        return self.atom(depth) + self.quantifier()

    def atom(self, depth: int) -> str:
        draw = self.draw
        kind = draw.random()
        if kind < 0.25 and depth:
            opening = draw.choice(["(", "(?:", "(?:", "(?>", "(?i:", "(?-i:", "(?m:", "(?s:", "(?i-m:"])
            return f"{opening}{self.alternatives(depth - 1)})"
        if kind < 0.5:
            return self.bracketed(2)
        if kind < 0.75:
            return self.shorthand()
        return draw.choice([".", self.literal(), self.literal()])

    def literal(self) -> str:
        character = self.draw.choice(LETTERS)
        return "\\" + character if character in ".^$*+?()[]{}|\\" else character

    def shorthand(self) -> str:
        if self.draw.random() < 0.5:
            return "\\" + self.draw.choice("wWdDsShH")
        return rf"\{self.draw.choice('ppP')}{{{self.draw.choice(PROPERTIES[:24] + PROPERTIES)}}}"

    def bracketed(self, depth: int) -> str:
        items = [self.item(depth) for _ in range(self.draw.randrange(1, 4))]
        text = self.draw.choice(["", "", "^"]) + "".join(items)
        if self.draw.random() < 0.15:
            operator = self.draw.choice(["&&", "&&", "--", "~~", "||"])
            text += operator + "".join(self.item(depth) for _ in range(self.draw.randrange(1, 3)))
        if self.draw.random() < 0.05:
            text += "-"
        return f"[{text}]"

    def item(self, depth: int) -> str:
        draw, kind = self.draw, self.draw.random()
        if kind < 0.35:
            return self.shorthand()
        if kind < 0.45:
            first, last = sorted([draw.choice(LETTERS), draw.choice(LETTERS)])
            return f"{self.escaped(first)}-{self.escaped(last)}"
        if kind < 0.5:
            return draw.choice(["a-z", "A-Z", "0-9", "\\x{61}-\\x{66}", "\x00-\x7f", "α-ω"])
        if kind < 0.56:
            return f"[:{draw.choice(POSIX)}:]"
        if kind < 0.62 and depth:
            return self.bracketed(depth - 1)
        if kind < 0.62 + self.oddity:
            return draw.choice(
                [r"\e", r"\b", "-", "^", "&", "~", "|", "[", r"\R", r"\pL", r"\n", r"\-", r"\]", "#", "{", "$"]
            )
        return self.escaped(draw.choice(LETTERS))

    def escaped(self, character: str) -> str:
        return "\\" + character if character in "-.!'" else character

    def quantifier(self) -> str:
        draw = self.draw
        if draw.random() < 0.55:
            return ""
        count = draw.choice(["*", "+", "+", "?", "{2}", "{1,2}", "{2,}", "{0,2}", "{,2}", "{1,3}"])
        return count + draw.choice(["", "", "", "", "?", "+"])
