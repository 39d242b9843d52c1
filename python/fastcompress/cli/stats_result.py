"""The result of `fastcompress stats`, as one JSON object and as tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastcompress.cli.tables import spell, table, with_decimals

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.statistics import GroupCounts, TokenStatistics, VocabularyStatistics

_NUM_LISTED = 20
_NUM_EXAMPLES = 6
_RANKS_PER_DECADE = 12
_MOST_GROUPS = 40

# Key of the result, name, and the meaning: the safety measures of a vocabulary, in the order in which they are shown.
MEASURES = (
    ("unused", "do not occur", "Tokens of the vocabulary that this text does not contain: a model learns nothing about "
     "them."),
    ("rare", "occur less than {least} times", "Tokens that occur, but too rarely to learn much about."),
    ("unreachable", "are reached by no text", "Proved: merging the bytes of the token does not give the token, so it "
     "comes up in no text; or another token takes its bytes first."),
    ("not_found", "have no text found for them", "No text that was tried gives the token: not its own bytes, alone, "
     "next to other characters or completed to characters. That no text does is not proved."),
    ("broken_utf8", "are not whole UTF-8", "Tokens that hold part of a character, single bytes above 0x7F included. "
     "Alone they decode to a replacement character."),
    ("impossible_utf8", "occur in no UTF-8 text", "Those of them whose bytes UTF-8 never contains, such as 0xFF. Only "
     "other data reaches them."),
)  # fmt: skip
UNSTABLE = (
    "Of {tested:,} tokens that are whole UTF-8, those that change are strings whose own ids are not the ones that they "
    "have next to the addition: a prompt that is cut there is encoded in another way than running text."
)
_UNSTABLE_MEANING = "Strings of tokens that have other ids with a {name} than alone."


def make_result(
    codec: Codec, counted: TokenStatistics, vocabulary: VocabularyStatistics | None, least: int
) -> dict[str, Any]:
    """Return everything that was measured as a JSON object, with all ids of every list.

    Args:
        codec: The codec.
        counted: The counts of the text.
        vocabulary: The measures of the vocabulary, or None if its tokens have no bytes of their own.
        least: Tokens that occur less often than this are called rare.
    """
    counts, total = counted.token_counts, counted.total
    bits, tokens_per_byte = counted.unigram_bits, total.num_tokens / max(1, total.num_bytes)
    by_frequency = counted.by_frequency().tolist()
    result: dict[str, Any] = {
        "codec": {"name": codec.name, "fingerprint": codec.fingerprint, "vocab_size": codec.vocab_size},
        "total": _numbers(total),
        "groups": {name: _numbers(group) for name, group in counted.groups.items()},
        "num_distinct": len(by_frequency),
        "unigram_bits_per_token": bits,
        "unigram_bits_per_byte": None if bits is None else bits * tokens_per_byte,
        "zipf": [[rank, int(counts[by_frequency[rank - 1]])] for rank in _ranks(len(by_frequency))],
        "most_frequent": _tokens(by_frequency[:_NUM_LISTED], counted, vocabulary),
        "least": least,
        "unused": None if vocabulary is None else [i for i in vocabulary.ordinary if not counts[i]],
        "rare": counted.seen_less_than(least).tolist(),
        "vocabulary": None,
        "special_tokens": {
            text: {"occurrences": occurrences, "documents": documents}
            for text, (occurrences, documents) in counted.spellings.items()
        },
    }
    if vocabulary is not None:
        result["vocabulary"] = {
            "num_special": len(vocabulary.special),
            "num_ordinary": len(vocabulary.ordinary),
            "longest": _tokens(vocabulary.longest(_NUM_LISTED), counted, vocabulary),
            "unreachable": vocabulary.unreachable,
            "not_found": vocabulary.not_found,
            "broken_utf8": vocabulary.broken_utf8,
            "impossible_utf8": vocabulary.impossible_utf8,
            "num_tested": vocabulary.num_tested,
            "unstable": vocabulary.unstable,
        }
        listed = [result["unused"], result["rare"], *vocabulary.unstable.values()]
        listed += [result["vocabulary"][key] for key, _, _ in MEASURES[2:]]
        examples = {i for ids in listed for i in ids[:_NUM_EXAMPLES]}
        result["vocabulary"]["examples"] = {str(i): spell(vocabulary.strings[i]) for i in sorted(examples)}
    return result


def measures(result: dict[str, Any]) -> list[tuple[str, str, list[int]]]:
    """Return the safety measures of a result: (name, meaning, ids)."""
    vocabulary = result["vocabulary"]
    if vocabulary is None:
        [(key, name, meaning)] = MEASURES[1:2]  # ids of fields, such as distances, are no vocabulary to be used up
        return [(name.format(**result), meaning, result[key])]
    rows = [
        (name.format(**result), meaning, result[key] if key in result else vocabulary[key])
        for key, name, meaning in MEASURES
    ]
    return rows + [
        (f"change with a {name}", _UNSTABLE_MEANING.format(name=name), ids)
        for name, ids in vocabulary["unstable"].items()
    ]


def examples(result: dict[str, Any], ids: Sequence[int]) -> list[str]:
    """Return the first few of a list's tokens as text; numbers if tokens have no bytes of their own."""
    known = (result["vocabulary"] or {}).get("examples", {})
    return [known.get(str(i), str(i)) for i in ids[:_NUM_EXAMPLES]]


def group_head(result: dict[str, Any]) -> list[str]:
    """Return the titles of the columns of `group_rows`."""
    head = ["group", "documents", "bytes", "words", "tokens", "bytes/token", "tokens/char", "tokens/word"]
    return [*head, "parity"] if result["parity"] else head


def group_rows(result: dict[str, Any]) -> list[list[str]]:
    """Return the cells of each group, and of all together if there are several."""
    groups = list(result["groups"].items())
    rows = [_group_row(result, name, group) for name, group in groups]
    return rows if len(groups) == 1 else [*rows, _group_row(result, "all", result["total"])]


def parity_line(result: dict[str, Any]) -> str:
    """Return the meaning of the parity of a result; empty if it has none."""
    if not result["parity"]:
        return ""
    reference = result["parity"]["reference"]
    if result["parity"]["is_parallel"]:
        return f"Parity: tokens per token of {reference}; the groups are parallel text."
    return f"Parity: tokens per token of {reference} for equally many bytes; the text is not taken for parallel."


def show_tables(result: dict[str, Any]) -> str:
    """Return the tables for the terminal."""
    codec, vocabulary = result["codec"], result["vocabulary"]
    rows = group_rows(result)
    shown = _largest(rows, [group["bytes"] for group in result["groups"].values()])
    lines = [table(group_head(result), shown)]
    if len(shown) < len(rows):
        lines.append(f"({len(rows) - len(shown):,} smaller groups: --json and -o have them)")
    if parity_line(result):
        lines.append(parity_line(result))
    entropy = with_decimals(result["unigram_bits_per_token"], 3)
    lines += ["", f"{codec['name']}: {result['num_distinct']:,} of {codec['vocab_size']:,} ids occur; "
              f"entropy of their frequencies {entropy} bits per token, "
              f"{with_decimals(result['unigram_bits_per_byte'], 3)} per byte"]  # fmt: skip
    head = ["most frequent", "id", "count"]
    lines += ["", table(head, [[t["shown"], str(t["id"]), f"{t['count']:,}"] for t in result["most_frequent"][:10]])]
    if vocabulary is not None:
        longest = [[t["shown"], str(t["id"]), f"{t['num_bytes']:,}"] for t in vocabulary["longest"][:10]]
        lines += ["", table(["longest tokens", "id", "bytes"], longest)]
    lines += ["", table(["tokens", "number", "for example"], [
        [name, f"{len(ids):,}", " ".join(examples(result, ids))] for name, _, ids in measures(result)
    ])]  # fmt: skip
    lines += ["", *_injections(result)]
    return "\n".join(lines)


def _largest(rows: list[list[str]], sizes: list[int]) -> list[list[str]]:
    """Return the rows of the largest groups in their order, and the row of all together, which has no size."""
    kept = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))[:_MOST_GROUPS]
    return [rows[i] for i in sorted(kept)] + rows[len(sizes) :]


def _injections(result: dict[str, Any]) -> list[str]:
    if not result["special_tokens"]:
        return ["no text spells a special token"]
    found = [
        [repr(text), f"{found['occurrences']:,}", f"{found['documents']:,}"]
        for text, found in result["special_tokens"].items()
    ]
    return [table(["spelling of a special token", "occurrences", "documents"], found)]


def _numbers(counts: GroupCounts) -> dict[str, Any]:
    return {
        "documents": counts.num_documents,
        "bytes": counts.num_bytes,
        "characters": counts.num_characters,
        "words": counts.num_words,
        "tokens": counts.num_tokens,
        "bytes_per_token": counts.bytes_per_token,
        "tokens_per_character": counts.tokens_per_character,
        "fertility": counts.fertility,
    }


def _tokens(
    ids: Sequence[int], counted: TokenStatistics, vocabulary: VocabularyStatistics | None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i in ids:
        row: dict[str, Any] = {"id": i, "count": int(counted.token_counts[i])}
        if vocabulary is not None:
            string = vocabulary.strings[i]
            row |= {"hex": string.hex(), "num_bytes": len(string)}
        row["shown"] = f"id {i}" if vocabulary is None else spell(vocabulary.strings[i])
        rows.append(row)
    return rows


def _ranks(num_ranks: int) -> list[int]:
    """Return the ranks to plot: evenly spaced on a logarithmic axis, the first and the last included."""
    ranks: list[int] = []
    step = 0
    while (rank := round(10 ** (step / _RANKS_PER_DECADE))) < num_ranks:
        if not ranks or rank > ranks[-1]:
            ranks.append(rank)
        step += 1
    return [*ranks, num_ranks] if num_ranks else []


def _group_row(result: dict[str, Any], name: str, group: dict[str, Any]) -> list[str]:
    row = [
        name,
        *(f"{group[key]:,}" for key in ("documents", "bytes", "words", "tokens")),
        with_decimals(group["bytes_per_token"], 3),
        with_decimals(group["tokens_per_character"], 3),
        with_decimals(group["fertility"], 3),
    ]
    return [*row, with_decimals(group.get("parity"), 3)] if result["parity"] else row
