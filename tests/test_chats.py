"""Chats: which lines are chats, how they are spelled and packed, and that nothing depends on the order of asking."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec, ByteCodec, ChatCodec, load_codec, save_codec
from fastcompress.data import RowLoader, TokenDataset, TokenRows
from fastcompress.data.chat import (
    Chat,
    Message,
    chat_to_json,
    check_complete,
    parse_chat,
    read_chats,
    split_chats,
)
from fastcompress.data.chat_rows import ChatRows, PackedChats, pack
from fastcompress.errors import ConfigError, DataError

CODEC = ChatCodec(ByteCodec())
ROLE, END = CODEC.role_ids, CODEC.end_of_message
GREETING = (Message("user", "Hi"), Message("assistant", "Yo!"))


def line(*messages: Any) -> str:
    return json.dumps({"messages": [dict(zip(("role", "content"), message, strict=True)) for message in messages]})


def chat(question: str, answer: str) -> Chat:
    return Message("user", question), Message("assistant", answer)


def test_a_chat_is_spelled_with_marks_and_only_answers_count() -> None:
    spelled = ChatRows(CODEC, 20).spell(GREETING)
    assert spelled.ids.tolist() == [260, ROLE["user"], *b"Hi", END, ROLE["assistant"], *b"Yo!", END]
    assert spelled.weight.tolist() == [0] * 5 + [1] * 4  # the three bytes of the answer, and its end
    assert spelled.answer_bytes == 3
    assert ChatRows(CODEC, 20).prompt(GREETING[:1]) == [260, ROLE["user"], *b"Hi", END, ROLE["assistant"]]


@pytest.mark.parametrize("base", [ByteCodec(), BPECodec(BPE.train(["<|end|> <|user|>"] * 9, vocab_size=262))])
def test_text_that_looks_like_a_mark_is_text(base: Any, tmp_path: Path) -> None:
    codec = ChatCodec(base)
    for text in ("<|end|>", "a<|assistant|>b", "<|user|><|end|>"):
        ids = codec.encode(text)
        assert ids.tolist() == base.encode(text).tolist()
        assert ids.max() < base.vocab_size
        assert codec.decode(ids) == text.encode()
    save_codec(codec, tmp_path / "codec.json")
    assert load_codec(tmp_path / "codec.json") == codec
    with pytest.raises(ConfigError, match="has the marks of a chat already"):
        ChatCodec(codec)


MALFORMED = {
    '{"messages": [{"role": "user", "con': "is not JSON (perhaps cut off)",
    "[1, 2]": "has no list of messages",
    '{"messages": "Hi"}': "has no list of messages",
    '{"messages": ["Hi"]}': "has a message that is not an object",
    line(("human", "Hi"), ("assistant", "Yo")): "has a role that is not one of system, user, assistant",
    line(("user", None), ("assistant", "Yo")): "has a message whose content is not a text",
    line(("user", "Hi"), ("system", "Be nice."), ("assistant", "Yo")): "has a system message that is not the first one",
    line(("user", "Hi")): "does not end with an answer (perhaps cut off)",
    line(): "does not end with an answer (perhaps cut off)",
    line(("user", "Hi"), ("assistant", "")): "has an empty answer",
    line(("user", "\ud800"), ("assistant", "Yo")): "has half of a surrogate pair in a text",
    "[" * 100_000: "is not JSON (perhaps cut off)",
}


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))  # type: ignore[arg-type]
def test_a_malformed_chat_is_refused_by_its_problem(text: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        check_complete(parse_chat(text))
    assert str(caught.value) == MALFORMED[text]


def test_a_file_names_its_bad_lines_or_skips_and_counts_them(tmp_path: Path) -> None:
    good = [line(("user", "Hi"), ("assistant", "Yo!")), line(("system", "S"), ("user", "é"), ("assistant", "ü"))]
    file = tmp_path / "chats.jsonl"
    file.write_text("\ufeff" + "\n".join([good[0], "", *list(MALFORMED)[:5], good[1]]) + "\r\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"5 of 7 lines .*: line 3 is not JSON.*; line 4 .*; line 5 .*; and 2 more"):
        read_chats(file)
    read = read_chats(file, skip_malformed=True)
    assert read.chats == [GREETING, (Message("system", "S"), Message("user", "é"), Message("assistant", "ü"))]
    assert read.skipped == {"is not JSON (perhaps cut off)": 1, "has no list of messages": 2,
                            "has a message that is not an object": 1,
                            "has a role that is not one of system, user, assistant": 1}  # fmt: skip
    file.write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match="holds no chat"):
        read_chats(file, skip_malformed=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_chats(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        read_chats(tmp_path / "nul\0l")


def test_held_out_chats_are_never_trained_on() -> None:
    chats = [chat(f"question {i % 90}", f"answer {i % 90}") for i in range(300)]
    train, held_out = split_chats(chats)
    assert len(train) + len(held_out) == 90
    assert set(train).isdisjoint(held_out)
    assert 1 <= len(held_out) <= 15
    assert tuple(map(len, split_chats(chats[:2]))) == (1, 1)
    with pytest.raises(DataError, match="only one chat"):
        split_chats([GREETING, GREETING])


@given(st.lists(st.integers(1, 30), max_size=60))
def test_packing_keeps_everything_once_and_wastes_little(lengths: list[int]) -> None:
    bins = pack(lengths, 30)
    assert sorted(index for members in bins for index in members) == list(range(len(lengths)))
    filled = [sum(lengths[index] for index in members) for members in bins]
    assert all(0 < total <= 30 for total in filled)
    assert all(a + b > 30 for a, b in itertools.pairwise(filled))  # no two neighbours fit into one


def loader_of(packed: PackedChats, rows: ChatRows, **settings: int) -> RowLoader:
    return RowLoader(cast("TokenDataset", packed), rows, **settings)


def test_a_row_holds_whole_chats_each_with_its_own_positions() -> None:
    chats, rows = [GREETING, chat("a", "b"), chat("x" * 40, "too long")], ChatRows(CODEC, 20)
    packed = PackedChats(chats, rows)
    assert (packed.num_tokens, packed.num_documents, packed.num_too_long) == (2, 2, 1)  # the one row, twice
    assert (packed.num_events, packed.num_bytes) == (4 + 2, 3 + 1)
    assert list(packed.document_ranges()) == [(0, 0), (1, 1)]
    row = rows.training_row(cast("TokenDataset", packed), 0)
    assert {name: (column.dtype, column.shape) for name, column in row.items()} == rows.columns
    assert row["document"].tolist() == [0] * 9 + [1] * 6 + [-1] * 5
    assert row["position"].tolist() == [*range(9), *range(6), *[0] * 5]
    answered = row["weight"] > 0
    assert row["target"][answered].tolist() == [*b"Yo!", END, ord("b"), END]
    assert row["input"][0] == row["input"][9] == 260
    with pytest.raises(DataError, match=r"no chat fits the context of 5 tokens \(the shortest has 6\)"):
        PackedChats(chats, ChatRows(CODEC, 5))


def test_a_chat_is_scored_in_a_row_of_its_own() -> None:
    rows = ChatRows(CODEC, 20)
    documents = [chat_to_json(one) for one in (GREETING, chat("é", "b"))]
    assert [rows.num_bytes(document) for document in documents] == [3, 1]
    batch = rows.stack([next(rows.scoring_rows(document, 20)) for document in documents])
    assert batch["weight"].tolist() == [[0] * 5 + [1] * 4, [0] * 5 + [1] * 2 + [0] * 2]
    assert batch["document"].tolist() == [[0] * 9, [0] * 7 + [-1] * 2]
    assert len({rows.fingerprint, ChatRows(CODEC, 21).fingerprint, TokenRows(CODEC, 20).fingerprint}) == 3


def test_an_epoch_has_every_row_once() -> None:
    rows = ChatRows(CODEC, 32)
    packed = PackedChats([chat(f"{i}", "b" * (i % 7 + 1)) for i in range(40)], rows)
    loader = loader_of(packed, rows, batch_size=1, seed=1)
    seen = [loader.batch(step)["input"].tobytes() for step in range(packed.num_tokens)]
    whole = [rows.training_row(cast("TokenDataset", packed), index)["input"].tobytes()
             for index in range(packed.num_tokens)]  # fmt: skip
    assert sorted(seen) == sorted(whole)
    assert seen != whole
    halves = [loader_of(packed, rows, batch_size=2, seed=1, rank=rank, world_size=2) for rank in (0, 1)]
    assert [halves[step % 2].batch(step // 2)["input"].tobytes() for step in range(6)] == seen[:6]


def test_rows_are_found_under_their_old_home() -> None:
    from fastcompress.data import chat as old_home

    with pytest.warns(DeprecationWarning, match=r"use fastcompress\.data\.chat_rows\.ChatRows$"):
        assert old_home.ChatRows is ChatRows
