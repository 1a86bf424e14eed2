"""goccl's library for C: where libgoccl.so.1 is, and the folder of goccl.h."""
import os

from ._version import version as __version__  # noqa: F401: made with the library

include = os.path.dirname(os.path.abspath(__file__))
library = os.path.join(include, "libgoccl.so.1")
