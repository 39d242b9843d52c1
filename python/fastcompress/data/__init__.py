"""Text on its way to a model: corpora, shards of tokens, rows, batches."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress._fronts import show as _show

if _TYPE_CHECKING:
    from fastcompress.data.batch_encoder import BatchEncoder
    from fastcompress.data.chat import read_chats, split_chats
    from fastcompress.data.corpora import Corpus, Document, load_corpus, split_documents
    from fastcompress.data.encode_dataset import EncodedSplit, encode_dataset
    from fastcompress.data.input_counts import count_pretokens
    from fastcompress.data.inputs import DocumentReader, Skipped
    from fastcompress.data.interop import TOKEN_FORMATS
    from fastcompress.data.loader import RowLoader
    from fastcompress.data.mixture import Mixture
    from fastcompress.data.packing import PackedDocuments
    from fastcompress.data.rows import Rows, TokenRows
    from fastcompress.data.shards import TokenDataset, write_encoded, write_shards, write_splits
    from fastcompress.data.statistics import token_statistics, vocabulary_statistics
    from fastcompress.data.torch_dataset import TorchDataset
    from fastcompress.data.verify import Verification, verify_shards

__all__ = [
    "TOKEN_FORMATS",
    "BatchEncoder",
    "Corpus",
    "Document",
    "DocumentReader",
    "EncodedSplit",
    "Mixture",
    "PackedDocuments",
    "RowLoader",
    "Rows",
    "Skipped",
    "TokenDataset",
    "TokenRows",
    "TorchDataset",
    "Verification",
    "count_pretokens",
    "encode_dataset",
    "load_corpus",
    "read_chats",
    "split_chats",
    "split_documents",
    "token_statistics",
    "verify_shards",
    "vocabulary_statistics",
    "write_encoded",
    "write_shards",
    "write_splits",
]

_show(
    __name__,
    {
        "TOKEN_FORMATS": "interop",
        "BatchEncoder": "batch_encoder",
        "Corpus": "corpora",
        "Document": "corpora",
        "DocumentReader": "inputs",
        "Mixture": "mixture",
        "PackedDocuments": "packing",
        "EncodedSplit": "encode_dataset",
        "RowLoader": "loader",
        "Rows": "rows",
        "Skipped": "inputs",
        "TokenDataset": "shards",
        "TokenRows": "rows",
        "TorchDataset": "torch_dataset",
        "Verification": "verify",
        "count_pretokens": "input_counts",
        "encode_dataset": "encode_dataset",
        "load_corpus": "corpora",
        "read_chats": "chat",
        "split_chats": "chat",
        "split_documents": "corpora",
        "token_statistics": "statistics",
        "verify_shards": "verify",
        "vocabulary_statistics": "statistics",
        "write_encoded": "shards",
        "write_shards": "shards",
        "write_splits": "shards",
    },
)
