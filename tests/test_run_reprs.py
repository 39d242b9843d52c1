"""What a shell shows of corpora, datasets, loaders and runs: settings and state, never a whole text or model."""

from __future__ import annotations

from pathlib import Path

from fastcompress.codec import ByteCodec
from fastcompress.data.corpora import Document, split_documents
from fastcompress.data.loader import RowLoader
from fastcompress.data.rows import TokenRows
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.models.gpt import GPTConfig
from fastcompress.training.checkpoint import load_run, read_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.train import train

TEXT = [b"a text to train on, and a little more of it, and then " * 40]


def test_documents_and_corpora() -> None:
    assert repr(Document("a.txt", b"short")) == "<Document 'a.txt': 5 bytes, b'short'>"
    long = Document("b.txt", b"x" * 2000)
    assert repr(long) == f"<Document 'b.txt': 2,000 bytes, {b'x' * 40!r}...>"
    corpus = split_documents("two", [long, Document("c.txt", b"y" * 3000)])
    sizes = {split: corpus.num_bytes(split) for split in ("train", "validation")}
    assert repr(corpus) == (
        f"<Corpus 'two': documents in train 1 ({sizes['train']:,} bytes), "
        f"validation 1 ({sizes['validation']:,} bytes), test 0 (0 bytes)>"
    )


def test_datasets_and_loaders(tmp_path: Path) -> None:
    dataset = TokenDataset.from_documents(TEXT, ByteCodec())
    size = "1 documents, 2,160 bytes, 2,161 tokens of a codec with 256 ids"
    assert repr(dataset) == f"<TokenDataset in memory: {size}>"
    write_shards(tmp_path, "train", TEXT, ByteCodec())
    assert repr(TokenDataset.open(tmp_path, "train")) == f"<TokenDataset split 'train' of {str(tmp_path)!r}: {size}>"
    loader = RowLoader(dataset, TokenRows(ByteCodec(), 8), batch_size=4, seed=3)
    assert repr(loader) == (f"<RowLoader context_length=8, batch_size=4, seed=3: 270 windows per epoch of {dataset!r}>")
    loader = RowLoader(dataset, TokenRows(ByteCodec(), 8), batch_size=4, seed=3, rank=1, world_size=2)
    assert "seed=3, rank=1, world_size=2: 270" in repr(loader)


def test_runs(tmp_path: Path) -> None:
    model = GPTConfig.modern(vocab_size=257, num_layers=1, num_heads=1, width=8, context_length=8)
    config = TrainConfig(steps=2, batch_size=2, device="cpu", self_check=False)
    data = TokenDataset.from_documents(TEXT, ByteCodec())
    result = train(model, ByteCodec(), data, TEXT, config, tmp_path, progress=False)
    assert "steps=2, tokens=32" in repr(result)
    assert "model" not in repr(result)
    assert len(repr(result)) < 300
    run = load_run(tmp_path)
    num_parameters = sum(parameter.numel() for parameter in run.model.parameters())
    assert repr(run) == (
        f"<Run at step {run.step}: GPT of {num_parameters:,} parameters, codec byte, 0 s, {run.flops:.3g} FLOPs, "
        f"{run.validation_bits_per_byte:.4f} bits per byte on validation>"
    )
    checkpoint = read_checkpoint(tmp_path / "last.safetensors")
    assert repr(checkpoint) == f"<Checkpoint of step 2: {len(checkpoint.tensors)} tensors>"
