"""Studies: arms under one budget, and the report of them. Needs the extra `train`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress._fronts import show as _show

if _TYPE_CHECKING:
    from fastcompress.study.arms import STUDIES, Arm, Study, bpe_arm, find_study
    from fastcompress.study.report import load_report, validate, write_report
    from fastcompress.study.runner import run_study

__all__ = [
    "STUDIES",
    "Arm",
    "Study",
    "bpe_arm",
    "find_study",
    "load_report",
    "run_study",
    "validate",
    "write_report",
]

_show(
    __name__,
    {
        "STUDIES": "arms",
        "Arm": "arms",
        "Study": "arms",
        "bpe_arm": "arms",
        "find_study": "arms",
        "load_report": "report",
        "run_study": "runner",
        "validate": "report",
        "write_report": "report",
    },
)
