"""The models and curves that the pages show, under the name by which pages import them."""

from minigrad.bert.stored import stored

__all__ = ["stored"]
