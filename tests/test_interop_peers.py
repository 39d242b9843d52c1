"""Token files as the projects' own code reads and writes them, where it is installed (datatrove, megatron-core)."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from fastcompress.data.interop import TOKEN_FORMATS
from fastcompress.data.interop.datatrove import _in_short
from tests.interop_files import arrays, lists

END = 99
DOCUMENTS = [[5, 0, 7], [65_535, 1], [9], list(range(100, 140))]
DTYPES = [("uint16", DOCUMENTS), ("uint32", [*DOCUMENTS, [65_536, (1 << 31) - 1]])]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("dtype", "documents"), DTYPES)
def test_datatrove_reads_and_writes_the_same(dtype: str, documents: list[list[int]], tmp_path: Path) -> None:
    tokenizer = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")
    dataset = pytest.importorskip("datatrove.utils.dataset")
    form, width = TOKEN_FORMATS["datatrove"], np.dtype(dtype).itemsize
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    form.write(ours / "x.ds", arrays(documents), dtype=dtype, end_of_text=END)
    marked = [[*document, END] for document in documents]
    stream = [id for document in marked for id in document]

    window = 3  # it reads windows of one more, and drops what is left at the end
    read = dataset.DatatroveFileDataset(str(ours / "x.ds"), window, token_size=width, return_positions=True)
    assert len(read) == len(stream) // (window + 1)
    assert np.concatenate([read[i]["input_ids"].numpy() for i in range(len(read))]).tolist() == stream[: 4 * len(read)]
    places = [place for document in marked for place in range(len(document))]
    for i in range(len(read)):
        inside = places[4 * i : 4 * i + 4]
        begin = next((k for k, place in enumerate(inside) if place == 0), 4)
        assert read[i]["positions"].numpy().tolist() == [*range(begin), *inside[begin:]]

    writer = tokenizer.TokenizedFile(
        str(theirs), "x.ds", tokenizer_name_or_path="fastcompress", save_final_metadata=True, token_size=width
    )
    for document in marked:
        writer.write(document, None)
    writer.close()
    assert lists(form.documents([theirs / "x.ds"], end_of_text=END)) == documents
    assert contents(theirs) == contents(ours)


def test_numbers_of_tokens_in_short_are_those_of_humanize() -> None:
    humanize = pytest.importorskip("humanize")
    for number in (
        0,
        1,
        12,
        999,
        1000,
        1234,
        12_345,
        123_456,
        999_400,
        999_600,
        9_996,
        1_500_000,
        15_600_000_000,
        10**13,
        10**15,
    ):
        assert _in_short(number) == humanize.metric(number, unit="T")


@pytest.mark.parametrize(("dtype", "documents"), DTYPES)
def test_megatron_reads_and_writes_the_same(dtype: str, documents: list[list[int]], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    torch = pytest.importorskip("torch")
    form, stored = TOKEN_FORMATS["megatron"], {"uint16": np.uint16, "uint32": np.int32}[dtype]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    form.write(ours / "x.bin", arrays(documents), dtype=dtype, end_of_text=END)
    marked = [[*document, END] for document in documents]
    read = module.IndexedDataset(str(ours / "x"))
    assert lists(read) == marked
    assert read.document_indices.tolist() == list(range(len(documents) + 1))
    assert read.index.dtype == stored

    builder = module.IndexedDatasetBuilder(str(theirs / "x.bin"), dtype=stored)
    for document in marked:
        builder.add_document(torch.tensor(document), [len(document)])
    builder.finalize(str(theirs / "x.idx"))
    assert contents(theirs) == contents(ours)
    assert lists(form.documents([theirs / "x.bin"], end_of_text=END)) == documents

    builder = module.IndexedDatasetBuilder(str(theirs / "y.bin"), dtype=stored, multimodal=True)
    builder.add_document(torch.tensor([1, 2, 3]), [2, 1], [0, 1])  # a document of two sequences
    builder.add_document(torch.tensor([4]), [1], [0])
    builder.finalize(str(theirs / "y.idx"))
    assert lists(form.documents([theirs / "y.idx"])) == [[1, 2, 3], [4]]
