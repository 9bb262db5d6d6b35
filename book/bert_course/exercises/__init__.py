"""The exercises as data: for each a right answer, cases, the typical mistakes with their sentences, and hints.

A module has the name of its chapter, or begins with it: encoder.py, and encoder_assembly.py for the last one there.
"""

from __future__ import annotations

import importlib
import pkgutil

from bert_course.contents import CHAPTERS

_modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
for _chapter in CHAPTERS:  # so that `check.progress()` lists them in the order of the course
    for _module in _modules:
        if _module == _chapter.name or _module.startswith(f"{_chapter.name}_"):
            importlib.import_module(f"{__name__}.{_module}")
