"""Writes text_tables.cc: data for NFC, the characters that ``\\w`` of a regex matches, and the assigned characters.

    pip install unicodedata2==16.0.0 && python cpp/fastcompress/unicode/generate_text_tables.py

NFC follows Unicode 9.0, as `tokenizers` 0.23 does (tests/test_nfc.py compares the two on every code point). The
normalization of a character never changes once it is assigned, so these are the tables of Unicode 16.0 without the
characters in NEWER, which Unicode 9.0 leaves unchanged. Everything else follows Unicode 16.0, as in unicode_tables.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import unicodedata2

UNICODE_VERSION = "16.0.0"
# Characters assigned after Unicode 9.0 that have a combining class or a canonical decomposition (DerivedAge.txt).
NEWER = """
07FD 0897-089F 08CA-08D3 09FE 0C3C 0D3B-0D3C 0EBA 1715 1ABF-1ACE 1DF6-1DFA A82C 105C9 105E4 10D24-10D27 10D69-10D6D
10EAB-10EAC 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 11383 11385 1138E 11391 113C5 113C7-113C8 113CE-113D0 1133B 1145E
11839-1183A 11938 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 16121-16128 1612F
16D68-16D6A 16FF0-16FF1 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF
"""
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)  # composed by arithmetic, not by a table
HANGUL_VOWELS_AND_TAILS = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]
BLOCK_BITS = 7
# Circled and squared letters: they have the property Alphabetic, but not the category of a letter.
OTHER_ALPHABETIC = [
    *range(0x24B6, 0x24EA),
    *range(0x1F130, 0x1F14A),
    *range(0x1F150, 0x1F16A),
    *range(0x1F170, 0x1F18A),
]
JOIN_CONTROL = [0x200C, 0x200D]


def code_points(ranges: str) -> set[int]:
    points: set[int] = set()
    for item in ranges.split():
        first, _, last = item.partition("-")
        points.update(range(int(first, 16), int(last or first, 16) + 1))
    return points


NEWER_POINTS = code_points(NEWER)


def combining_class(code_point: int) -> int:
    return 0 if code_point in NEWER_POINTS else unicodedata2.combining(chr(code_point))


def decomposition(code_point: int) -> list[int]:
    """Return the full canonical decomposition, or an empty list."""
    if code_point in HANGUL_SYLLABLES or code_point in NEWER_POINTS:
        return []
    parts = unicodedata2.normalize("NFD", chr(code_point))
    return [] if parts == chr(code_point) else list(map(ord, parts))


def primary_compositions() -> dict[tuple[int, int], int]:
    """Return {(first, second): composed}, without Hangul and the pairs that Unicode excludes from composition."""
    pairs = {}
    for code_point in range(0x110000):
        mapping = unicodedata2.decomposition(chr(code_point))
        parts = mapping.split()
        if len(parts) != 2 or mapping.startswith("<") or code_point in NEWER_POINTS:
            continue
        if unicodedata2.normalize("NFC", chr(code_point)) == chr(code_point):  # otherwise it is excluded
            pairs[int(parts[0], 16), int(parts[1], 16)] = code_point
    return pairs


def nfc_classes(compositions: dict[tuple[int, int], int]) -> list[int]:
    """Return each code point's combining class, plus 256 if NFC may decompose it or compose it with the one before."""
    seconds = {second for _, second in compositions} | set(HANGUL_VOWELS_AND_TAILS)
    composed = set(compositions.values())
    return [
        combining_class(c) + 256 * (c in seconds or (c not in composed and bool(decomposition(c))))
        for c in range(0x110000)
    ]


def is_word(code_point: int) -> bool:
    category = unicodedata2.category(chr(code_point))
    return (
        category[0] in "LM"
        or category in ("Nd", "Nl", "Pc")
        or code_point in OTHER_ALPHABETIC
        or code_point in JOIN_CONTROL
    )


def ranges_of(points: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for point in points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1] = (ranges[-1][0], point)
        else:
            ranges.append((point, point))
    return ranges


def rows(values: Iterable[object], per_row: int = 24) -> str:
    items = list(map(str, values))
    lines = [", ".join(items[i : i + per_row]) for i in range(0, len(items), per_row)]
    return "    " + ",\n    ".join(lines)


def braced(records: Iterable[tuple[int, ...]], per_row: int = 6) -> str:
    return rows(("{" + ", ".join(f"{value:#x}" for value in record) + "}" for record in records), per_row)


def main() -> None:
    if unicodedata2.unidata_version != UNICODE_VERSION:
        raise SystemExit(f"install unicodedata2=={UNICODE_VERSION}; this is {unicodedata2.unidata_version}")
    compositions = primary_compositions()
    classes = nfc_classes(compositions)
    classes += [0] * (1 << BLOCK_BITS)  # one block more, for kInvalidCodePoint
    kinds = sorted(set(classes))
    assert kinds[0] == 0
    assert len(kinds) <= 256
    size = 1 << BLOCK_BITS
    numbers = [kinds.index(value) if value else 0 for value in classes]
    blocks: dict[tuple[int, ...], int] = {}
    index = [
        blocks.setdefault(tuple(numbers[start : start + size]), len(blocks)) for start in range(0, len(numbers), size)
    ]
    assert len(blocks) <= 256
    decompositions = [(c, decomposition(c)) for c in range(0x110000) if decomposition(c)]
    letters = [letter for _, parts in decompositions for letter in parts]
    records, begin = [], 0
    for code_point, parts in decompositions:
        records.append((code_point, begin, len(parts)))
        begin += len(parts)
    pairs = [(first, second, composed) for (first, second), composed in sorted(compositions.items())]
    words = ranges_of(c for c in range(0x110000) if is_word(c))
    assigned = ranges_of(c for c in range(0x110000) if unicodedata2.category(chr(c)) != "Cn")
    content = [value for block in blocks for value in block]
    path = Path(__file__).with_name("text_tables.cc")
    path.write_text(
        "// Generated by generate_text_tables.py; do not edit.\n"
        '#include "fastcompress/unicode/text_tables.h"\n\n'
        "namespace fastcompress::unicode {\n\n"
        "// clang-format off\n"
        f"const uint8_t kNfcBlockIndex[{len(index)}] = {{\n{rows(index)}}};\n\n"
        f"const uint8_t kNfcBlocks[{len(content)}] = {{\n{rows(content)}}};\n\n"
        f"const NfcClass kNfcClasses[{len(kinds)}] = {{\n"
        + rows((f"{{{value & 255}, {'true' if value > 255 else 'false'}}}" for value in kinds), 8)
        + "};\n\n"
        f"const Decomposition kDecompositionArray[] = {{\n{braced(records)}}};\n"
        "const std::span<const Decomposition> kDecompositions = kDecompositionArray;\n"
        f"const uint32_t kDecompositionLetters[{len(letters)}] = {{\n{rows(map(hex, letters), 12)}}};\n\n"
        f"const Composition kCompositionArray[] = {{\n{braced(pairs, 4)}}};\n"
        "const std::span<const Composition> kCompositions = kCompositionArray;\n\n"
        f"const CodePointRange kWordRangeArray[] = {{\n{braced(words)}}};\n"
        "const std::span<const CodePointRange> kWordRanges = kWordRangeArray;\n\n"
        f"const CodePointRange kAssignedRangeArray[] = {{\n{braced(assigned)}}};\n"
        "const std::span<const CodePointRange> kAssignedRanges = kAssignedRangeArray;\n"
        "// clang-format on\n\n"
        "}  // namespace fastcompress::unicode\n",
        encoding="ascii",
    )
    print(f"{path.name}: {len(blocks)} blocks, {len(records)} decompositions, {len(pairs)} compositions")


if __name__ == "__main__":
    main()
