"""Codecs: bytes to token ids and back, one interface for every tokenization the studies compare.

A codec is immutable and thread-safe. Its ids are [0, vocab_size); the data layer adds one more, `vocab_size`,
that ends a document, and no codec ever produces or accepts it. `fingerprint` covers everything that decides
the mapping, so codecs with one fingerprint encode alike: shards and checkpoints carry it to know their own.

A new kind of codec implements `Codec` and calls `register_codec`; saving, loading and the CLI then know it.
"""

from fastcompress.codec.arithmetic import ArithmeticCodec, WindowsCodec
from fastcompress.codec.basic import BPECodec, ByteCodec, CharCodec
from fastcompress.codec.bigrams import BigramCoverage, bigram_coverage
from fastcompress.codec.equal_info import EqualInfoCodec, PaperEqualInfoCodec
from fastcompress.codec.files import CodecKind, load_codec, register_codec, save_codec
from fastcompress.codec.gzip import GzipCodec
from fastcompress.codec.lz77 import LZ77Codec, LZPCodec
from fastcompress.codec.protocol import Codec
from fastcompress.codec.spec import CODECS_BY_NAME, codec_from_spec

__all__ = [
    "CODECS_BY_NAME",
    "ArithmeticCodec",
    "BPECodec",
    "BigramCoverage",
    "ByteCodec",
    "CharCodec",
    "Codec",
    "CodecKind",
    "EqualInfoCodec",
    "GzipCodec",
    "LZ77Codec",
    "LZPCodec",
    "PaperEqualInfoCodec",
    "WindowsCodec",
    "bigram_coverage",
    "codec_from_spec",
    "load_codec",
    "register_codec",
    "save_codec",
]
