"""Whorl keeps recursive views over changing data up to date."""

from whorl.model.functions import function
from whorl.model.values import Term

__version__ = "0.1.0"
__all__ = ["Term", "__version__", "function"]
