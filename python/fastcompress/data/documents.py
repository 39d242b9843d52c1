"""The document: a text, or any other bytes, and its origin."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Document:
    """A text, or any other bytes, and its origin.

    >>> Document("greeting.txt", b"Hello!")
    <Document 'greeting.txt': 6 bytes, b'Hello!'>

    Attributes:
        id: A name for people, such as that of the file; fingerprints do not depend on it.
        data: The contents.
        whole_sha256: If this is only the beginning of a longer document, the SHA-256 of that document; otherwise None.
        source: The path of the file that the document was read from, "standard input", or "" for none.
        index: The position of the document in that file, from 0; documents that were skipped count, too.
        is_row: True if it is a row of a table or of JSON lines, and so valid UTF-8; False for a whole file.
    """

    id: str
    data: bytes
    whole_sha256: bytes | None = None
    source: str = field(default="", compare=False)
    index: int = field(default=0, compare=False)
    is_row: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        begin = repr(self.data[:40]) + ("..." if len(self.data) > 40 else "")
        return f"<Document {self.id!r}: {len(self.data):,} bytes, {begin}>"
