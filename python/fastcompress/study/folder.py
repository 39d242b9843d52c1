"""The records in a study's folder, which keep arms made with other settings out of its report.

    arms/study.json          every setting of the study, what its corpus holds, seed, device and version
    arms/<arm>/result.json   the same for one arm, with its codec; the time spent on it; once done, its report entry

Both are compared with the current settings. Codecs are compared by fingerprint, since making one is code.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastcompress import __version__
from fastcompress._files import write_atomically
from fastcompress.codec import Codec
from fastcompress.data.corpora import Corpus
from fastcompress.errors import FormatError, OutputError
from fastcompress.study.arms import Arm, Study
from fastcompress.study.report import validate_arm

Settings = dict[str, Any]  # plain values only: what JSON gives back


def study_settings(study: Study, corpus: Corpus, seed: int, device_kind: str) -> Settings:
    """Return everything that determines a study's figures, except the codecs and the speed of the machine.

    Args:
        study: The study.
        corpus: Its corpus.
        seed: Its seed.
        device_kind: "cpu", "cuda" or "mps"; each rounds differently.
    """
    settings = {
        **_plain_fields(study, "arms"),
        "arms": {arm.name: _plain_fields(arm, "make_codec") for arm in study.arms},
        "arm_order": [arm.name for arm in study.arms],
        "corpus_fingerprint": corpus.fingerprint,
        "seed": seed,
        "device_kind": device_kind,
        "package_version": __version__,
    }
    return _as_json(settings)


def arm_settings(settings: Settings, arm: Arm, codec: Codec) -> Settings:
    """Return the part of ``study_settings`` that determines one arm's entry, and the arm's codec."""
    own = {name: value for name, value in settings.items() if name not in ("arms", "arm_order")}
    return _as_json({**own, "arm": _plain_fields(arm, "make_codec"), "codec_fingerprint": codec.fingerprint})


def _plain_fields(settings: Any, left_out: str) -> dict[str, Any]:
    return {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings) if f.name != left_out}


def _as_json(settings: dict[str, Any]) -> Settings:
    plain: Settings = json.loads(json.dumps(settings, default=repr))
    return plain


def claim(directory: Path, settings: Settings) -> None:
    """Mark ``directory`` as the folder of the study, or check that it is.

    Raises:
        OutputError: It holds another study (the message names what differs), or cannot be written.
        FormatError: Its mark is damaged.
    """
    path = directory / "arms" / "study.json"
    make_folder(path.parent, directory)
    if path.exists():
        refuse_differences(directory, read_object(path, "choose another output folder, or delete it"), settings)
    elif any(not other.name.startswith(".") for other in path.parent.iterdir()):
        raise OutputError(f"{directory}: holds arms of another version; choose another output folder, or delete it")
    else:
        write_atomically(path, to_bytes(settings))


def make_folder(path: Path, named: Path) -> None:
    """Make the folder ``path`` if it is missing. Raises OutputError, about ``named``, if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{named}: cannot be written ({error.strerror}); choose another output folder") from error


@dataclass
class ArmRecord:
    """An arm's ``result.json``.

    Attributes:
        made_from: The settings of the arm (``arm_settings``).
        seconds: Seconds spent on the arm, over all interruptions.
        entry: Its part of report.json; None until it is done.
    """

    path: Path
    made_from: Settings
    since: float  # time.perf_counter() up to which `seconds` counts
    seconds: float = 0.0
    entry: dict[str, Any] | None = None

    @classmethod
    def open(cls, path: Path, made_from: Settings, since: float) -> ArmRecord:
        """Read the record at ``path``, or make a new one; ``since`` is the time when work on the arm began or resumed.

        Raises:
            OutputError: The arm has other settings (the message names what differs), or its folder cannot be made.
            FormatError: The file is damaged.
        """
        if not path.exists():
            make_folder(path.parent, path.parent)
            return cls(path, made_from, since)
        stored = read_object(path, _REMEDY)
        seconds, entry = stored.get("seconds"), stored.get("entry")
        if not isinstance(stored.get("made_from"), dict) or not isinstance(seconds, (int, float)):
            raise FormatError(f"{path}: is no arm's result; {_REMEDY}")
        refuse_differences(path.parent, stored["made_from"], made_from)
        if entry is not None:
            try:
                validate_arm(entry, source=str(path))
            except FormatError as error:
                raise FormatError(f"{error} ({_REMEDY})") from None
        return cls(path, made_from, since, float(seconds), entry)

    def keep_time(self) -> None:
        """Add the time since the last call, and write the record."""
        now = time.perf_counter()
        self.seconds, self.since = self.seconds + now - self.since, now
        content = {"made_from": self.made_from, "seconds": self.seconds, "entry": self.entry}
        write_atomically(self.path, to_bytes(content))

    def finish(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Write the record with ``entry``, which gets the arm's total time, and return the entry."""
        self.entry = {**entry, "wall_seconds": self.seconds + time.perf_counter() - self.since}
        self.keep_time()
        return self.entry


_REMEDY = "delete it: the arm's training run is kept and gives it anew"


def to_bytes(content: dict[str, Any]) -> bytes:
    """Return JSON for people and programs."""
    return json.dumps(content, indent=1).encode() + b"\n"


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """Read a JSON object. Raises FormatError, with ``remedy``, if the file is not one."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path}: cannot be read as JSON ({error}); {remedy}") from error
    if not isinstance(content, dict):
        raise FormatError(f"{path}: must hold an object, not {type(content).__name__}; {remedy}")
    return content


def refuse_differences(folder: Path, stored: Settings, given: Settings) -> None:
    """Raise OutputError, naming what differs, unless ``folder`` was made with the settings given."""
    found = list(_differences(stored, given))
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise OutputError(
            f"{folder}: was made with other settings: {'; '.join(found[:3])}{more}; "
            "run it with those again, choose another output folder, or delete it"
        )


def _differences(stored: object, given: object, name: str = "") -> Iterator[str]:
    if isinstance(stored, Mapping) and isinstance(given, Mapping):
        for key in sorted({*stored, *given}):
            inner = f"{name}.{key}" if name else key
            yield from _differences(stored.get(key, "(not set)"), given.get(key, "(not set)"), inner)
    elif stored != given:
        yield f"{name} was {_shown(stored)}, is now {_shown(given)}"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
