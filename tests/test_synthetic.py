"""The synthetic corpus: patterns of a pool and noise, the same everywhere, for models of equal cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastcompress.codec import ByteCodec
from fastcompress.data import TokenDataset, load_corpus
from fastcompress.data.synthetic import repeated_patterns
from fastcompress.errors import ConfigError
from fastcompress.models import make_model_config
from fastcompress.training import TrainConfig, train

CODEC = ByteCodec()


def test_documents_are_patterns_of_one_pool() -> None:
    documents = [d.data for d in repeated_patterns(9, num_patterns=3, pattern_bytes=(6, 6), noise=0.0, seed=4)]
    assert {len(document) for document in documents} == {4096}
    assert len(set(documents)) == 9
    pieces = [document[begin : begin + 6] for document in documents for begin in range(0, 4090, 6)]
    counts = [pieces.count(pattern) for pattern in set(pieces)]
    assert len(counts) == 3
    assert min(counts) > 0.3 * len(pieces)


def test_noise_is_the_share_of_its_pieces() -> None:
    [document] = repeated_patterns(1, document_bytes=60_000, num_patterns=1, pattern_bytes=(20, 20), noise=0.25)
    [(pattern, count)] = sorted(
        ((document.data[i : i + 20], document.data.count(document.data[i : i + 20])) for i in range(0, 3000, 7)),
        key=lambda found: -found[1],
    )[:1]
    assert len(pattern) == 20
    noise_bytes = 60_000 - 20 * count
    assert count == pytest.approx(60_000 / (20 + 4.5 / 3), rel=0.05)  # one piece of noise in four, 4.5 bytes on average
    assert noise_bytes / 4.5 / (noise_bytes / 4.5 + count) == pytest.approx(0.25, rel=0.1)


def test_the_named_corpus_is_the_same_everywhere() -> None:
    corpus = load_corpus("repeated-patterns")
    assert corpus.fingerprint == "25a293ba8d018df2e2280c3d55fc01128e114dc27871f83b8d68e5b0d17a7500"
    assert sum(map(corpus.num_bytes, ("train", "validation", "test"))) == 1 << 20
    one, other = ([d.data for d in repeated_patterns(2, document_bytes=99, seed=seed)] for seed in (0, 1))
    assert one != other
    assert one == [document.data for document in repeated_patterns(2, document_bytes=99)]


def test_two_models_train_for_equal_cost(tmp_path: Path) -> None:
    """A model of bytes and HEAT, on one text, as the command does with one --flops for both."""
    sizes = {"context_length": 32, "width": 16, "num_layers": 1, "num_heads": 1}
    local = {"local_width": 8, "encoder_layers": 1, "decoder_layers": 1, "local_heads": 1, "local_window": 8}
    data = TokenDataset.from_documents(
        (document.data for document in repeated_patterns(8, document_bytes=200, num_patterns=4)), CODEC
    )
    settings = TrainConfig(flops=2e8, batch_size=4, learning_rate=0.01, device="cpu", self_check=False, num_evals=1)
    for model in (sizes, {"kind": "heat", **sizes, **local}):
        config = make_model_config(model, CODEC)
        result = train(config, CODEC, data, [b"some text"], settings, tmp_path / config.kind, progress=False)
        per_step = 4 * config.build().flops().training
        assert 2e8 - per_step < result.flops <= 2e8 + per_step
        assert result.best_bits_per_byte < 9.0


def test_bad_settings_are_refused() -> None:
    for passed, message in (
        ({"pattern_bytes": (3, 2)}, r"pattern_bytes is \(3, 2\); it must be a range"),
        ({"noise": 1.5}, r"noise is 1\.5; it must be in \[0, 1\]"),
        ({"num_patterns": 0}, "num_patterns is 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            next(repeated_patterns(**passed))
