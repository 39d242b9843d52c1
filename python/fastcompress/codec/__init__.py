"""Codecs: one interface for every tokenization that the studies compare, from bytes to token ids and back.

A codec is immutable and thread-safe. Its ids are in [0, vocab_size). The data layer adds the id `vocab_size`, which
marks the end of a document; no codec produces or accepts it. `fingerprint` covers everything that determines the
mapping, so codecs with equal fingerprints encode alike; shards and checkpoints store it to recognize their codec.

To add a kind of codec, implement `Codec` and call `register_codec`; `save_codec`, `load_codec` and the command line
then handle it.

>>> codec = codec_from_spec("lz77-buckets")
>>> codec.decode(codec.encode("to be or not to be"))
b'to be or not to be'
"""

from fastcompress.codec.arithmetic import ArithmeticCodec, WindowsCodec
from fastcompress.codec.auxiliary import AuxiliaryModel
from fastcompress.codec.basic import BPECodec, ByteCodec, CharCodec
from fastcompress.codec.bigrams import BigramCoverage, bigram_coverage
from fastcompress.codec.byte_entropy import EntropyByteCodec
from fastcompress.codec.chat import ChatCodec
from fastcompress.codec.equal_info import EqualInfoCodec, PaperEqualInfoCodec
from fastcompress.codec.files import CodecKind, load_codec, register_codec, save_codec
from fastcompress.codec.greedy_dictionary import GreedyDictionaryCodec
from fastcompress.codec.gzip import GzipCodec
from fastcompress.codec.lz77 import LZ77Codec, LZPCodec
from fastcompress.codec.paper import CompiledPaperCodec
from fastcompress.codec.protocol import Codec
from fastcompress.codec.proxy import ProxyCodec
from fastcompress.codec.spec import CODECS_BY_NAME, codec_from_spec

__all__ = [
    "CODECS_BY_NAME",
    "ArithmeticCodec",
    "AuxiliaryModel",
    "BPECodec",
    "BigramCoverage",
    "ByteCodec",
    "CharCodec",
    "ChatCodec",
    "Codec",
    "CodecKind",
    "CompiledPaperCodec",
    "EntropyByteCodec",
    "EqualInfoCodec",
    "GreedyDictionaryCodec",
    "GzipCodec",
    "LZ77Codec",
    "LZPCodec",
    "PaperEqualInfoCodec",
    "ProxyCodec",
    "WindowsCodec",
    "bigram_coverage",
    "codec_from_spec",
    "load_codec",
    "register_codec",
    "save_codec",
]
