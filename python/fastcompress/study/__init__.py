"""Studies, which compare tokenizations under one budget, and searches for settings. Needs the extra `train`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress._fronts import show as _show

if _TYPE_CHECKING:
    from fastcompress.study.arms import STUDIES, Arm, Study, bpe_arm, codec_arm, find_study
    from fastcompress.study.report import load_report, validate, write_report
    from fastcompress.study.runner import run_study
    from fastcompress.study.tune import Search, tune

__all__ = [
    "STUDIES",
    "Arm",
    "Search",
    "Study",
    "bpe_arm",
    "codec_arm",
    "find_study",
    "load_report",
    "run_study",
    "tune",
    "validate",
    "write_report",
]

_show(
    __name__,
    {
        "STUDIES": "arms",
        "Arm": "arms",
        "Search": "tune",
        "Study": "arms",
        "bpe_arm": "arms",
        "codec_arm": "arms",
        "find_study": "arms",
        "load_report": "report",
        "run_study": "runner",
        "tune": "tune",
        "validate": "report",
        "write_report": "report",
    },
)
