"""Where the package says that it comes from: its address in pyproject.toml, and the README's pictures.

A registry shows the README without the repository around it, so its pictures need whole addresses. Both are there if
`_config.yml` has the repository's address.
"""

from __future__ import annotations

import re


def with_address(pyproject: str, address: str) -> str:
    """The text of pyproject.toml with the repository's address, or without one if that is empty."""
    text = re.sub(r'\[project\.urls\]\nRepository = ".*"\n\n', "", pyproject)
    urls = f'[project.urls]\nRepository = "{address}"\n\n' if address else ""
    return text.replace("[tool.setuptools.packages.find]\n", f"{urls}[tool.setuptools.packages.find]\n", 1)


def with_pictures(readme: str, address: str) -> str:
    """The README's text with whole addresses of its pictures, of the branch main; with paths if `address` is empty."""
    where = f"{address}/raw/main/" if address else ""
    return re.sub(r'(<img src=")(?:[^"]*/raw/main/)?(?=book/)', rf"\g<1>{where}", readme)
