"""Tables of the suites that one process measures: LZ77, the arithmetic coder, codebooks and compressors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from table_text import conditions, is_ours, machine, markdown, peers, ratio, short

Results = dict[str, Any]


def render(results: list[Results]) -> str:
    """Return the tables of one suite from the results of one or several conditions, one results file each."""
    about = conditions(results, [describe(result) for result in results])
    return f"{about}\n\n{TABLES[results[0]['suite']](results)}\n"


def describe(result: Results) -> str:
    """Return date, machine, versions and rounds."""
    return (
        f"{machine(result)}; peers: {peers(result)}. One process, CPU time of one thread, medians of "
        f"{result['rounds']} round{'s' * (result['rounds'] != 1)}."
    )


def keys(tables: Iterable[dict[str, Any]]) -> list[str]:
    """Return the keys of several dicts in order, each once."""
    return list(dict.fromkeys(key for table in tables for key in table))


def lz77(results: list[Results]) -> str:
    """Return a table with a row per text. Where there are several conditions, each figure is the worst of them."""
    texts = [result["texts"] for result in results]
    rows = []
    for name in keys(texts):
        found = [text.get(name) for text in texts]
        present = [figures for figures in found if figures]
        exact = present[0]["phrases"] / present[0]["phrases_exact"]
        slowest = {key: min(figures[key] for figures in present) for key in present[0]}
        longest = {key: max(figures[key] for figures in present) for key in present[0]}
        # How far one append undercuts a full parse of the 64 KiB before it.
        cheaper = min(figures["reparse_us"] / figures["append_us"] for figures in present)
        rows.append(
            [
                name,
                ratio([lz77_lead(figures) for figures in found]),
                f"{exact:.4f}",
                f"{slowest['parse_lazy']:.0f}",
                f"{slowest['reconstruct']:.0f}",
                f"{slowest['append']:.0f}",
                f"{1000 * longest['append_us']:.0f}, 1 / {cheaper:,.0f}",
                f"{longest['stream_ns']:.0f}, {longest['forked_stream_ns']:.0f}",
                f"{longest['legal_literals_us']:.1f}, {longest['legal_distances_us']:,.0f}",
            ]
        )
    titles = [
        "text",
        "parse, times as fast as libdeflate -6 (MB/s)",
        "phrases / exact",
        "lazy parse, MB/s",
        "reconstruct, MB/s",
        "append byte by byte, MB/s",
        "one append after 64 KiB, ns, and as a share of parsing them",
        "256 streams, ns a byte: separate, forked from one",
        "legal literals, distances, us",
    ]
    return markdown(titles, rows)


def lz77_lead(figures: dict[str, float] | None) -> tuple[float, str] | None:
    """Return how many times as fast as libdeflate the parse is, and both rates."""
    if not figures:
        return None
    ours, theirs = figures["parse"], figures["libdeflate_6"]
    return ours / theirs, f"({ours:.0f} / {theirs:.0f})"


def arithmetic(results: list[Results]) -> str:
    """Return a table with a row per case and way of ours, compared with the fastest of constriction's ways."""
    cases = [result["cases"] for result in results]
    rows = []
    for case in keys(cases):
        for way in keys(measured[case] for measured in cases if case in measured):
            if way.startswith("constriction"):
                continue
            leads = [[arithmetic_lead(each.get(case), way, what) for each in cases] for what in ("encode", "decode")]
            sizes = next(arithmetic_bytes(each[case], way) for each in cases if case in each)
            rows.append([f"{case}{way.removeprefix('ours')}", *map(ratio, leads), sizes])
    titles = ["case", "encode: times as fast as constriction (M symbols/s)", "decode", "bytes, ours / constriction"]
    return markdown(titles, rows)


def arithmetic_lead(case: dict[str, Any] | None, way: str, what: str) -> tuple[float, str] | None:
    """Return how many times as fast as constriction one of our ways is, and both rates."""
    if not case or way not in case:
        return None
    best = max(figures[what] for name, figures in case.items() if name.startswith("constriction"))
    return case[way][what] / best, f"({case[way][what]:.3g} / {best:.3g})"


def arithmetic_bytes(case: dict[str, Any], way: str) -> str:
    """Return the size of our code, of constriction's smallest, and the distance from the entropy if it is known."""
    least = min(figures["bytes"] for name, figures in case.items() if name.startswith("constriction"))
    over = case[way].get("over_entropy_percent")
    beyond = "" if over is None else f" ({abs(over):.5f} % from the entropy of its table)"
    return f"{case[way]['bytes']:,} / {least:,}{beyond}"


def codebook(results: list[Results]) -> str:
    """Return a table with a row per codebook; speeds are the slowest of the conditions."""
    books = [result["codebooks"] for result in results]
    rows = []
    for name in keys(books):
        present = [each[name] for each in books if name in each]
        row = present[0]
        wall, cpu = (max(each[key] for each in present) for key in ("train_wall_s", "train_cpu_s"))
        encode, decode = (min(each[key] for each in present) for key in ("encode", "decode"))
        held_out = [f"{row[f'bytes_per_token_{text}']:.3f}" for text in ("val", "test")]
        rows.append([name, *held_out, f"{wall:.0f} ({cpu:.0f})", f"{encode:,.0f}", f"{decode:,.0f}"])
    megabytes = results[0]["training_bytes"] / 1e6
    titles = [
        "codebook",
        "bytes per token, english/val",
        "english/test",
        "training, s: wall, two threads (CPU)",
        "encode, MB/s",
        "decode, MB/s",
    ]
    return f"Trained on {megabytes:.0f} MB of English.\n\n{markdown(titles, rows)}"


def compressors(results: list[Results]) -> str:
    """Return a table per text, smallest first; speeds are the slowest of the conditions."""
    parts = []
    for text in keys(result["texts"] for result in results):
        present = [result["texts"][text] for result in results if text in result["texts"]]
        engines = merge_engines([each["engines"] for each in present])
        least = min(engines["xz -9e"]["bytes"], engines["bz2 -9"]["bytes"])
        size = present[0]["bytes"]
        rows = []
        for name, row in sorted(engines.items(), key=lambda item: item[1]["bytes"]):
            share = f"{row['bytes'] / least:.3f}"
            speeds = [short(row["compress"]), short(row["decompress"])]
            rows.append(
                [name, f"{row['bytes']:,}", share, f"{8 * row['bytes'] / size:.3f}", *speeds, note(name, engines)]
            )
        titles = ["engine", "bytes", "of min(xz -9e, bz2 -9)", "bits per byte", "compress MB/s", "decompress MB/s", ""]
        parts.append(f"{text}, {size:,} bytes:\n\n{markdown(titles, rows)}")
    return "\n\n".join(parts)


def merge_engines(measured: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the size of each engine's output and its slowest speed each way over the conditions."""
    slowest = {
        name: {way: min(each[name][way] for each in measured if name in each) for way in ("compress", "decompress")}
        for name in keys(measured)
    }
    sizes = {name: max(each[name]["bytes"] for each in measured if name in each) for name in slowest}
    return {name: {"bytes": sizes[name], **speeds} for name, speeds in slowest.items()}


def note(name: str, engines: dict[str, dict[str, float]]) -> str:
    """Return the other engines that are at least as small as ours and at least as fast to decompress."""
    if not is_ours(name):
        return ""
    mine = engines[name]
    better = [
        other
        for other, row in engines.items()
        if not is_ours(other) and row["bytes"] <= mine["bytes"] and row["decompress"] >= mine["decompress"]
    ]
    return f"behind {', '.join(better)}" if better else "on the frontier"


TABLES: dict[str, Callable[[list[Results]], str]] = {
    "lz77": lz77,
    "arithmetic": arithmetic,
    "codebook": codebook,
    "compressors": compressors,
}
