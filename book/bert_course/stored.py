"""The models and curves that came with the course, made once by long runs (`book/make/store.py`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from minigrad.bert.trained import trained_model

# Called with the file or folder that is asked for, where these come one by one: Python in a page of the site sets it.
bring: Callable[[str], object] | None = None


def stored(name: str) -> Path:
    """The file or folder `name` that came with the course: in book/records/, or inside the installed package.

    The model "start" is the one that comes with minigrad. Raises FileNotFoundError naming what there is.
    """
    first, *rest = name.split("/")
    if bring is not None:
        bring(first)
    if first == "start":
        return trained_model().joinpath(*rest)
    package = Path(str(files("bert_course")))
    folders = (package / "records", package.parent / "records")  # of a wheel, of the repository
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    present = sorted({"start", *(path.name for folder in folders for path in folder.glob("*"))})
    raise FileNotFoundError(f"the course has no stored {name!r}; it has {', '.join(present)}")
