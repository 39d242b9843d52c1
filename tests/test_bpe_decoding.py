"""BPE.decode and its relatives: every kind of sequence, batches, bad ids, and lists that change while they are read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.errors import ConfigError, DataError, TokenRangeError, UnknownTokenError

TEXT = "the cat sat on the mat, é中🙂 " * 30
tok = BPE.train(TEXT, vocab_size=270, special_tokens=["<|end|>"])
ids = tok.encode(TEXT)


class Index:
    """An integer by ``__index__`` only, which may do anything when asked."""

    def __init__(self, value: int, act: Callable[[], None] = lambda: None) -> None:
        self.value = value
        self.act = act

    def __index__(self) -> int:
        self.act()
        return self.value


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        np.array,
        lambda x: np.array(x, np.uint32),
        lambda x: np.array(x, np.uint16),
        lambda x: np.array(x, np.int8) if max(x, default=0) < 128 else np.array(x, ">u4"),
        lambda x: np.repeat(np.array(x, np.uint32), 2)[::2],  # not contiguous
        lambda x: list(np.array(x, np.uint32)),
        lambda x: [Index(i) for i in x],
        lambda x: memoryview(np.array(x, np.uint32)),
    ],
)
def test_any_sequence_of_ids(convert: Callable[[list[int]], Any]) -> None:
    for some in (ids, ids[:3], [97, 98], []):
        expected = b"".join(map(tok.token_bytes, some))
        tokens = convert(some)
        assert tok.decode_bytes(tokens) == expected
        assert tok.decode(tokens) == expected.decode("utf-8", "replace")
        assert tok.decode_bytes_batch([tokens, tokens]) == [expected] * 2


def test_many_ids() -> None:
    """So many that the GIL is released and threads are used."""
    many = ids * 100
    expected = TEXT * 100
    assert tok.decode(many) == tok.decode(np.array(many)) == expected
    assert tok.decode_bytes(many) == expected.encode()
    for num_threads in (None, 1, 2, 7):
        assert tok.decode_batch([many, [], ids, many], num_threads=num_threads) == [expected, "", TEXT, expected]
        assert tok.decode_bytes_batch([many, ids], num_threads) == [expected.encode(), TEXT.encode()]


@given(
    batch=st.lists(st.lists(st.integers(0, 269), max_size=20), max_size=8),
    errors=st.sampled_from(["replace", "ignore", "backslashreplace"]),
    num_threads=st.integers(1, 4),
)
@settings(max_examples=200, deadline=None)
def test_batches_equal_single_calls(batch: list[list[int]], errors: str, num_threads: int) -> None:
    assert tok.decode_batch(batch, errors, num_threads) == [tok.decode(one, errors) for one in batch]
    assert tok.decode_bytes_batch(iter(batch), num_threads) == [tok.decode_bytes(one) for one in batch]
    assert tok.decode_bytes_batch(list(map(np.array, batch))) == [tok.decode_bytes(one) for one in batch]


@pytest.mark.parametrize("bad", [-1, 270, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, -(1 << 63), 1 << 80, -(1 << 80)])
def test_unknown_ids(bad: int) -> None:
    array = np.array([97, bad], np.int64 if abs(bad) < 1 << 63 else object)  # not float64, which NumPy might choose
    for tokens in ([97, bad], (97, bad), array, [97, Index(bad)]):
        for call in (tok.decode, tok.decode_bytes):
            with pytest.raises(UnknownTokenError, match=f"token id {bad} at position 1") as caught:
                call(tokens)
            assert isinstance(caught.value, DataError | KeyError)
            assert isinstance(caught.value, TokenRangeError) == (not 0 <= bad < 1 << 32)
    with pytest.raises(UnknownTokenError, match=f"token id {bad} "):
        tok.token_bytes(bad)
    with pytest.raises(UnknownTokenError, match=f"token id {bad} at position 0"):
        tok.decode_batch([[97], [bad]])


@pytest.mark.parametrize("bad", [["a"], [None], [[1]], [1.0], "12", b"12", 5, None, {1, 2}, np.array([[1]]), [b"a"]])
def test_what_is_no_sequence_of_ids(bad: Any) -> None:
    for call in (tok.decode, tok.decode_bytes, lambda x: tok.decode_batch([x])):
        with pytest.raises(TypeError):
            call(bad)


def test_bad_arguments() -> None:
    with pytest.raises(ConfigError, match="num_threads"):
        tok.decode_batch([[1]], num_threads=0)
    with pytest.raises(UnicodeDecodeError):
        tok.decode_batch([[97], [255]], "strict")
    with pytest.raises(LookupError):
        tok.decode([255], "no such handler")
    with pytest.raises(TypeError):
        tok.decode([97], 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tok.decode_batch(5)  # type: ignore[arg-type]


def test_a_list_that_changes_while_it_is_read() -> None:
    """``__index__`` may run anything; neither a freed item nor memory behind the list is read."""
    for act in (list.clear, lambda items: items.extend([97] * 1000), lambda items: items.pop()):
        tokens: list[Any] = [97] * 50
        tokens[10] = Index(98, lambda tokens=tokens, act=act: act(tokens))  # type: ignore[misc]
        assert tok.decode(tokens).startswith("a" * 10 + "b")
    batch: list[Any] = [[97], [98], [99]]
    batch[0] = [Index(97, batch.clear)]
    assert tok.decode_batch(batch) == ["a", "b", "c"]  # the batch is copied first


def test_an_array_that_changes_while_it_is_decoded() -> None:
    """Another thread writes into the array: some text or an error, nothing else."""
    array = np.full(200_000, 97, np.uint32)
    longest = int(tok.token_lengths.argmax())
    stop = threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            array[::7] = longest
            array[::7] = 97

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for _ in range(30):
            with contextlib.suppress(DataError):  # "the token ids changed while they were decoded"
                assert set(tok.decode(array)) <= set(TEXT + "<|end|>")
                tok.decode_bytes_batch([array, array])
    finally:
        stop.set()
        thread.join()


def test_token_id_and_ordinary_tokens() -> None:
    assert tok.ordinary_tokens() == {tok.token_bytes(i): i for i in range(269)}
    assert all(tok.token_id(token) == i for token, i in tok.ordinary_tokens().items())
    assert tok.token_id("<|end|>") == tok.token_id(b"<|end|>") == 269
    with pytest.raises(UnknownTokenError, match="no token spells 'nothing of the kind'"):
        tok.token_id("nothing of the kind")


def test_merging_without_a_pattern() -> None:
    whole = BPE.train(TEXT, vocab_size=280, pattern="none")
    assert whole.encode_by_merges(TEXT.encode()) == whole.encode(TEXT)
    assert tok.encode_by_merges(b" cat") == tok.encode(" cat")
    assert tok.encode_by_merges(b"") == []
