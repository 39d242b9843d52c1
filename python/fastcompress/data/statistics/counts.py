"""Counts of the tokens of a stream of texts, in all and by group."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fastcompress.data.encode import encode_documents, training_encoder
from fastcompress.data.statistics.parts import TextPart
from fastcompress.errors import ConfigError, DataError, with_place

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.codec import Codec

_IDS_AT_ONCE = 1 << 20  # so that adding up all ids of a vocabulary costs little per document


@dataclass
class GroupCounts:
    """The counts of one group.

    >>> GroupCounts(num_bytes=10, num_tokens=4).bytes_per_token
    2.5

    Attributes:
        num_documents: The number of documents.
        num_bytes: The number of bytes.
        num_characters: The number of Unicode code points; each byte, or broken sequence, that is not UTF-8 counts as
            one, as ``bytes.decode("utf-8", "replace")`` has it.
        num_words: The number of words: runs of characters without white space (``str.split``).
        num_tokens: The number of tokens, without end-of-document ids.
    """

    num_documents: int = 0
    num_bytes: int = 0
    num_characters: int = 0
    num_words: int = 0
    num_tokens: int = 0

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token; None if there are no tokens."""
        return self.num_bytes / self.num_tokens if self.num_tokens else None

    @property
    def tokens_per_character(self) -> float | None:
        """Tokens per character; None if there are no characters."""
        return self.num_tokens / self.num_characters if self.num_characters else None

    @property
    def fertility(self) -> float | None:
        """Tokens per word; None if there are no words. Means little where white space does not part words."""
        return self.num_tokens / self.num_words if self.num_words else None

    def add(self, other: GroupCounts) -> None:
        """Add the counts of another group to this one."""
        self.num_documents += other.num_documents
        self.num_bytes += other.num_bytes
        self.num_characters += other.num_characters
        self.num_words += other.num_words
        self.num_tokens += other.num_tokens


@dataclass
class TokenStatistics:
    """The counts of a data set.

    Attributes:
        groups: The counts by group, in the order in which groups first occur.
        token_counts: How often each id occurs: int64[vocab_size].
        spellings: For each special token whose text occurs: (number of occurrences, number of documents with one).
    """

    groups: dict[str, GroupCounts]
    token_counts: npt.NDArray[np.int64]
    spellings: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def total(self) -> GroupCounts:
        """The counts of all groups together."""
        total = GroupCounts()
        for counts in self.groups.values():
            total.add(counts)
        return total

    @property
    def num_tokens(self) -> int:
        """The number of tokens."""
        return int(self.token_counts.sum())

    @property
    def unigram_bits(self) -> float | None:
        """The entropy of the token frequencies in bits per token; None if there are no tokens."""
        seen = self.token_counts[self.token_counts > 0]
        if not len(seen):
            return None
        shares = seen / seen.sum()
        return float(-(shares * np.log2(shares)).sum()) + 0.0

    def by_frequency(self) -> npt.NDArray[np.int64]:
        """Return the ids that occur, the most frequent first, of equals the lowest id first: int64[n]."""
        seen = np.flatnonzero(self.token_counts)
        return seen[np.argsort(-self.token_counts[seen], kind="stable")]

    def seen_less_than(self, least: int) -> npt.NDArray[np.int64]:
        """Return the ids that occur, but less often than `least` times: int64[n]."""
        return np.flatnonzero((self.token_counts > 0) & (self.token_counts < least))

    def parity(self, reference: str, *, is_parallel: bool = False) -> dict[str, float | None]:
        """Return how many tokens each group needs for each token of a reference group, such as English.

        Args:
            reference: The name of the reference group.
            is_parallel: Whether the groups say the same in different languages, document by document. Then parity is
                the quotient of the numbers of tokens, as in "Language Model Tokenizers Introduce Unfairness Between
                Languages" (Petrov, La Malfa, Torr and Bibi, 2023). Otherwise it is the quotient of tokens per byte: of
                the tokens of equally many bytes. (Scripts differ in the bytes that a sentence takes, which only
                parallel text shows.)

        Returns:
            Group to parity; None for a group, or all if the reference is one, without tokens.

        Raises:
            ConfigError: There is no such group.
            DataError: The groups are said to be parallel, but differ in the number of documents.
        """
        if reference not in self.groups:
            some = ", ".join(list(self.groups)[:8]) or "none"
            raise ConfigError(f"reference is {reference!r}; it must be a group ({some})")
        base = self.groups[reference]
        parities: dict[str, float | None] = {}
        for name, counts in self.groups.items():
            if is_parallel and counts.num_documents != base.num_documents:
                raise DataError(
                    f"group {name} has {counts.num_documents:,} documents and {reference} has "
                    f"{base.num_documents:,}; parallel text has the same number in every group"
                )
            share = 1.0 if is_parallel else (base.num_bytes / counts.num_bytes if counts.num_bytes else 0.0)
            known = counts.num_tokens > 0 and base.num_tokens > 0
            parities[name] = counts.num_tokens / base.num_tokens * share if known else None
        return parities


def token_statistics(
    parts: Iterable[TextPart],
    codec: Codec,
    *,
    spellings: Sequence[str] = (),
    count_words: bool = True,
    num_threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TokenStatistics:
    """Count the tokens of texts, reading each part once.

    Every number is exact and the same for any number of threads. Memory grows with the vocabulary, the largest part and
    the number of groups, not with the number of texts.

    Args:
        parts: The texts (`read_parts`).
        codec: The codec that encodes them, as for a data set to train on.
        spellings: Texts whose occurrences are counted: those of special tokens, which someone who writes the text could
            inject (`special_spellings`). Of several that begin at one position the longest is taken.
        count_words: Whether to count words and characters, too; otherwise they are 0, in half the time.
        num_threads: The number of threads, or None for one per core, at most 8.
        progress: Called with the number of bytes of each part when it has been counted.

    Raises:
        DataError: The codec cannot encode a document, which is named.
        ConfigError: `num_threads` is less than 1.
    """
    groups: dict[str, GroupCounts] = {}
    finder = _SpellingCounter(spellings)
    ids_seen = _IdCounter(codec.vocab_size)
    for part, ids in _encoded(parts, codec, num_threads):
        counts = groups.setdefault(part.group, GroupCounts())
        counts.num_documents += part.ends_document
        counts.num_bytes += len(part.data)
        counts.num_tokens += len(ids)
        if count_words:
            text = part.data.decode("utf-8", "replace")
            counts.num_characters += len(text)
            counts.num_words += len(text.split())
        ids_seen.add(ids)
        finder.add(part)
        if progress is not None:
            progress(len(part.data))
    return TokenStatistics(groups, ids_seen.finish(), finder.counts())


def _encoded(
    parts: Iterable[TextPart], codec: Codec, num_threads: int | None
) -> Iterator[tuple[TextPart, npt.NDArray[np.uint32]]]:
    """Yield (part, its ids) in order. A DataError of the codec names the document."""
    waiting: deque[TextPart] = deque()
    failures: list[DataError] = []  # of reading, which name their file already

    def contents() -> Iterator[bytes]:
        try:
            for part in parts:
                waiting.append(part)
                yield part.data
        except DataError as error:
            failures.append(error)
            raise

    try:
        for _, ids in encode_documents(contents(), codec, num_threads=num_threads):
            yield waiting.popleft(), ids
    except DataError as error:
        if error in failures:
            raise
        encode = training_encoder(codec)
        for part in waiting:
            _encode_or_name(encode, part)
        raise


def _encode_or_name(encode: Callable[[bytes], object], part: TextPart) -> None:
    """Encode a part; its document's name begins the message of a DataError."""
    try:
        encode(part.data)
    except DataError as error:
        raise with_place(error, part.document) from error


class _IdCounter:
    """Counts of ids, added up a million at a time."""

    def __init__(self, vocab_size: int) -> None:
        self._counts: npt.NDArray[np.int64] = np.zeros(vocab_size, np.int64)
        self._waiting: list[npt.NDArray[np.uint32]] = []
        self._num_waiting = 0

    def add(self, ids: npt.NDArray[np.uint32]) -> None:
        self._waiting.append(ids)
        self._num_waiting += len(ids) + 1
        if self._num_waiting >= _IDS_AT_ONCE:
            self._flush()

    def finish(self) -> npt.NDArray[np.int64]:
        self._flush()
        return self._counts

    def _flush(self) -> None:
        if self._waiting:
            self._counts += np.bincount(np.concatenate(self._waiting), minlength=len(self._counts))
        self._waiting, self._num_waiting = [], 0


class _SpellingCounter:
    """Occurrences of some texts, and the documents that hold them."""

    def __init__(self, spellings: Sequence[str]) -> None:
        longest_first = sorted({text.encode() for text in spellings if text}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None
        self._occurrences: Counter[bytes] = Counter()
        self._documents: Counter[bytes] = Counter()
        self._in_document: set[bytes] = set()

    def add(self, part: TextPart) -> None:
        if self._pattern is None:
            return
        found = Counter(match.group() for match in self._pattern.finditer(part.data))
        self._occurrences += found
        self._in_document |= found.keys()
        if part.ends_document:
            self._documents.update(self._in_document)
            self._in_document = set()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the spellings that occur, the most frequent first."""
        return {text.decode(): (number, self._documents[text]) for text, number in self._occurrences.most_common()}
