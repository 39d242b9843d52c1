from fastcompress._core import archive as archive
from fastcompress._core import arithmetic as arithmetic
from fastcompress._core import bpe as bpe
from fastcompress._core import context_mixer as context_mixer
from fastcompress._core import equal_info as equal_info
from fastcompress._core import greedy_dictionary as greedy_dictionary
from fastcompress._core import lz77 as lz77
from fastcompress._core import pretokenizer as pretokenizer

__version__: str
