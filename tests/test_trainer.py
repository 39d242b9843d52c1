"""BPE.train's settings, sources and errors, and what it must not do: depend on threads, take quadratic time."""

from __future__ import annotations

import os
import pickle
import random
import time
from pathlib import Path
from typing import Any

import pytest

from fastcompress import BPE, PretokenCounts
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError

TEXT = (
    "The cat sat on the mat; the cats' hats sat there, 1234 times.\nWhoever reads this sentence knows some English "
    "words, and a tokenizer learns a few of them from it, if it is read often enough.\n" * 20
)
TEXTS = [TEXT[i : i + 97] for i in range(0, len(TEXT), 31)]


# ---------------------------------------------------------------------- determinism


def test_a_hundred_trainings_give_one_file() -> None:
    files = {
        BPE.train(random.Random(i).sample(TEXTS, len(TEXTS)), vocab_size=330, num_threads=1 + i % 3).to_bytes()
        for i in range(100)
    }
    assert len(files) == 1


@pytest.mark.parametrize("tie_break", ["lowest_id", "huggingface"])
@pytest.mark.parametrize("pattern", ["cl100k", "none"])
def test_threads_memory_and_counting_first_change_nothing(tie_break: Any, pattern: str) -> None:
    settings: dict[str, Any] = {"vocab_size": 330, "tie_break": tie_break, "pattern": pattern}
    long_texts = [TEXT * 300, *TEXTS]  # over a MB: cut for threads
    expected = BPE.train(long_texts, num_threads=1, **settings)
    assert BPE.train(long_texts, num_threads=3, **settings) == expected
    assert BPE.train(iter(long_texts), num_threads=2, max_memory_bytes=1000, **settings) == expected
    counts = BPE.count_pretokens(long_texts[1:], pattern=pattern, max_memory_bytes=5000)
    counts += BPE.count_pretokens(long_texts[0], pattern=pattern)
    assert BPE.train(counts, **settings) == expected
    assert BPE.train(counts, **settings) == expected  # training leaves them as they were


# ---------------------------------------------------------------------- sources


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes(TEXT.encode())
    expected = BPE.train([TEXT, "more"], vocab_size=300)
    assert BPE.train([path, "more"], vocab_size=300) == expected
    assert BPE.train(path, vocab_size=300) == BPE.train(TEXT, vocab_size=300)
    with pytest.raises(DataError, match=r"none\.txt: cannot be read.*No such file"):
        BPE.train(tmp_path / "none.txt", vocab_size=300)
    with pytest.raises(DataError, match="directory"):
        BPE.train([tmp_path], vocab_size=300)
    with pytest.raises(TypeError, match=r"expected str, bytes or a pathlib\.Path, not int"):
        BPE.train([5], vocab_size=300)  # type: ignore[list-item]


def test_a_file_with_nowhere_to_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastcompress.bpe import counts

    monkeypatch.setattr(counts, "_BATCH_BYTES", 1000)
    data = bytes(random.Random(2).choices(b"ACGT", k=1_000_000)) + b" \xc3\xa9" * 2000
    path = tmp_path / "dna.txt"
    path.write_bytes(data)
    begin = time.perf_counter()
    counted = BPE.count_pretokens(path, num_threads=1)
    assert time.perf_counter() - begin < 5  # typical: 0.02 s
    assert counted == BPE.count_pretokens(data)


def test_surrogates_and_other_alphabets() -> None:
    texts = ["caf\u00e9 \ud83d\ude00 \udbc0 " * 9]
    clean = [texts[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")]
    assert BPE.train(texts, vocab_size=262) == BPE.train(clean, vocab_size=262)


# ---------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tie_break": "first"}, "tie_break is 'first'; it must be"),
        ({"min_frequency": 0}, "min_frequency is 0; it must be"),
        ({"max_token_length": 0}, "max_token_length is 0; it must be"),
        ({"initial_alphabet": b""}, "tie_break='huggingface'"),
        ({"max_memory_bytes": 0}, "max_memory_bytes is 0; it must be"),
        ({"vocab_size": 255}, "256 bytes and 0 special tokens take 256"),
        ({"vocab_size": 3, "tie_break": "huggingface", "initial_alphabet": b"abcd"}, "4 bytes of initial_alphabet"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BPE.train(TEXT, **{"vocab_size": 300, **settings})


def test_limits_may_leave_fewer_tokens() -> None:
    tok = BPE.train("ab ab ab cd", vocab_size=300, min_frequency=2)
    assert [tok.token_bytes(i) for i in range(256, tok.vocab_size)] == [b"ab", b" ab"]
    tok = BPE.train("abc" * 5, vocab_size=300, max_token_length=5)
    assert max(len(tok.token_bytes(i)) for i in range(tok.vocab_size)) == 3
    with pytest.raises(DataError, match="support only 258 tokens"):
        BPE.train("ab ab ab", vocab_size=300)


def test_huggingface_ids() -> None:
    tok = BPE.train(TEXT, vocab_size=300, tie_break="huggingface", special_tokens=["<|end|>", "<|pad|>"])
    assert tok.special_tokens == {"<|end|>": 0, "<|pad|>": 1}
    assert [tok.token_bytes(i) for i in (2, 3, 95, 96)] == [b"!", b'"', b"~", b"\xa1"]
    assert tok.token_bytes(190) == b"\x00"
    assert len(tok.token_bytes(258)) == 2
    assert tok.decode(tok.encode("<|end|>caf\u00e9", allowed_special="all")) == "<|end|>caf\u00e9"
    few = BPE.train("abab", vocab_size=3, tie_break="huggingface", initial_alphabet=b"")
    assert [few.token_bytes(i) for i in range(3)] == [b"a", b"b", b"ab"]
    assert few.vocab_size == 3 + 254
    assert few.decode(few.encode("zebra \u00e9")) == "zebra \u00e9"


def test_going_on() -> None:
    base = BPE.train(TEXT, vocab_size=290, special_tokens=["<|end|>"], pattern="gpt2")
    tok = BPE.train("some other words, other words", vocab_size=295, continue_from=base)
    assert tok.pattern == "gpt2"
    assert tok.special_tokens == {"<|end|>": 289}
    assert tok.merges[: len(base.merges)].tolist() == base.merges.tolist()
    assert base.vocab_size == 290
    for settings, message in [
        ({"pattern": "cl100k"}, "pattern: 'cl100k', continue_from: 'gpt2'"),
        ({"special_tokens": ["<|end|>"]}, "one of continue_from already"),
        ({"vocab_size": 280}, "290 ids of continue_from"),
        ({"tie_break": "huggingface", "initial_alphabet": b""}, "without continue_from"),
    ]:
        with pytest.raises(ConfigError, match=message):
            BPE.train(TEXT, **{"vocab_size": 320, "continue_from": base, **settings})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"continue_from is .*; it must be a BPE"):
        BPE.train(TEXT, vocab_size=320, continue_from=b"")  # type: ignore[arg-type]


def test_going_on_from_ranks(tmp_path: Path) -> None:
    """A rank file says what merges made it; so it is gone on from as if they were listed."""
    path = tmp_path / "trained.tiktoken"
    trained = BPE.train(TEXT, vocab_size=290, pattern="gpt2")
    trained.to_tiktoken(path)
    ranks = BPE.from_tiktoken(path, pattern="gpt2", special_tokens={"<|end|>": 292, "<|other|>": 295})
    listed = BPE.train("", vocab_size=296, continue_from=ranks)
    assert listed.merges.tolist() == trained.merges.tolist()
    assert listed.special_tokens == ranks.special_tokens
    assert [listed.encode(text, allowed_special="all") for text in [*TEXTS, "a<|end|>b"]] == [
        ranks.encode(text, allowed_special="all") for text in [*TEXTS, "a<|end|>b"]
    ]
    tok = BPE.train(TEXT, vocab_size=320, continue_from=ranks, special_tokens=["<|new|>"])
    assert tok.merges[:34].tolist() == trained.merges.tolist()
    assert tok.merges[34:, 2].tolist() == list(range(296, 319))
    assert tok.special_tokens == {"<|end|>": 292, "<|other|>": 295, "<|new|>": 319}
    BPE.train(TEXT, vocab_size=310, continue_from=BPE.from_tiktoken(path, pattern="gpt2")).to_tiktoken(path)
    expected = BPE.train(TEXT, vocab_size=310, pattern="gpt2")
    assert BPE.from_tiktoken(path, pattern="gpt2").ordinary_tokens() == expected.ordinary_tokens()


def test_ranks_that_no_training_makes() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for extra, message in [
        ({b"ab": 256, b"abcd": 257, b"abc": 258}, r"token 257, b'abcd', is not .* gives \[b'ab', b'c', b'd'\]"),
        ({b"bc": 256, b"ab": 257, b"abcd": 258, b"cd": 259}, r"token 258, b'abcd', is not .*\[b'a', b'bc', b'd'\]"),
    ]:
        with pytest.raises(ConfigError, match=message):
            BPE.train(TEXT, vocab_size=300, continue_from=BPE.from_ranks(ranks | extra, pattern="cl100k"))


def test_progress_counts_tokens() -> None:
    text = " ".join(str(n * 7919) for n in range(5000))
    calls: list[tuple[int, int]] = []
    BPE.train(text, vocab_size=1300, special_tokens=["<|x|>"], on_progress=lambda *call: calls.append(call))
    assert [done for done, _ in calls] == [256, 512, 768, 1024]
    assert {wanted for _, wanted in calls} == {1300 - 257}


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize("tie_break", ["lowest_id", "huggingface"])
@pytest.mark.parametrize("unit", ["a", "ab", "\u4e2d", "abcdefghij"])
def test_one_huge_pretoken_is_not_quadratic(unit: str, tie_break: Any) -> None:
    begin = time.perf_counter()
    tok = BPE.train(unit * (1_000_000 // len(unit)), vocab_size=266, pattern="none", tie_break=tie_break)
    assert time.perf_counter() - begin < 10  # quadratic: hours; typical: 0.1 s
    assert tok.decode(tok.encode(unit * 50)) == unit * 50


def test_dna_without_spaces() -> None:
    """Field reports name hours for 512 tokens of such text."""
    dna = random.Random(1).choices(b"ACGT", k=1_500_000)
    begin = time.perf_counter()
    tok = BPE.train(bytes(dna), vocab_size=512)
    assert time.perf_counter() - begin < 20  # typical: 0.3 s
    assert len(tok.encode(bytes(dna[:3000]))) < 1000


# ---------------------------------------------------------------------- counts


def test_counts_are_plain_numbers() -> None:
    counts = BPE.count_pretokens(["the cat the", "the"], pattern="gpt2")
    assert list(counts.items()) == [(b" cat", 1), (b" the", 1), (b"the", 2)]
    assert (len(counts), counts.pattern, counts.num_runs) == (3, "gpt2", 0)
    assert repr(counts) == "<PretokenCounts pattern='gpt2' distinct=3>"
    counts.add("cat cat")
    assert dict(counts.items())[b" cat"] == 2
    assert dict((counts + counts).items()) == {k: 2 * n for k, n in counts.items()}
    counts.merge(counts)
    assert dict(counts.items())[b"the"] == 4
    assert list(PretokenCounts().items()) == []


def test_counts_travel(tmp_path: Path) -> None:
    counts = BPE.count_pretokens(TEXTS)
    counts.save(tmp_path / "a.counts")
    for copy in (
        PretokenCounts.load(tmp_path / "a.counts"),
        PretokenCounts.load(tmp_path / "a.counts", max_memory_bytes=1000),
        PretokenCounts.from_bytes(counts.to_bytes()),
        pickle.loads(pickle.dumps(counts)),
    ):
        assert copy == counts
        assert copy.to_bytes() == counts.to_bytes() == (tmp_path / "a.counts").read_bytes()
    assert counts != BPE.count_pretokens(TEXTS[1:])
    assert counts != BPE.count_pretokens(TEXTS, pattern="gpt2")


def test_counts_that_do_not_belong_together() -> None:
    counts = BPE.count_pretokens(TEXT)
    with pytest.raises(MismatchError, match="'cl100k' and 'gpt2' do not add up"):
        counts += BPE.count_pretokens(TEXT, pattern="gpt2")
    with pytest.raises(ConfigError, match="pattern: 'gpt2', counts: 'cl100k'"):
        BPE.train(counts, vocab_size=300, pattern="gpt2")
    with pytest.raises(TypeError):
        counts + 5  # type: ignore[operator]


def test_files_of_counts_that_are_none(tmp_path: Path) -> None:
    blob = bytearray(BPE.count_pretokens(TEXT).to_bytes())
    blob[40] ^= 1
    path = tmp_path / "damaged.counts"
    path.write_bytes(blob)
    with pytest.raises(FormatError, match=r"damaged.counts: .*(damaged|SHA-256)"):
        PretokenCounts.load(path)
    with pytest.raises(FormatError, match="not a file of pretoken counts"):
        PretokenCounts.from_bytes(b"something else")
    with pytest.raises(FormatError, match="format version 2; this build reads version 1"):
        PretokenCounts.from_bytes(b"\x89FCCNT\r\n\x02\0\0\0")
    with pytest.raises(FileNotFoundError):
        PretokenCounts.load(tmp_path / "none")


def test_a_table_that_changes_while_it_is_read() -> None:
    counts = BPE.count_pretokens(str(list(range(9000))))
    items = counts.items()
    next(items)
    counts.add("more")
    with pytest.raises(RuntimeError, match="changed during iteration"):
        list(items)


def test_runs_are_removed_with_the_object(tmp_path: Path) -> None:
    counts = BPE.count_pretokens(TEXTS, max_memory_bytes=1, temporary_folder=tmp_path)
    assert len(os.listdir(tmp_path)) == 1
    assert counts.num_runs > 0
    if (child := os.fork()) == 0:
        del counts  # a child's copy leaves the files alone
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(counts.items())) > 50
    del counts
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() != 0 and not os.path.exists("/dev/full")), reason="needs /dev/full"
)
def test_no_room_for_runs(tmp_path: Path) -> None:
    counts = PretokenCounts(max_memory_bytes=1, temporary_folder=tmp_path)
    folder = next(tmp_path.iterdir())
    folder.rmdir()
    folder.write_text("no folder any more")
    with pytest.raises(OutputError, match=r"cannot be written.*temporary_folder"):
        counts.add(TEXT)


def test_counting_in_threads_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    total = PretokenCounts()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: total.add(text, num_threads=1), TEXTS))
    assert total == BPE.count_pretokens(TEXTS)
