"""The repository's address, in one step: all that hangs on it, and what is to be set on GitHub by hand.

    python -m book.make.publish OWNER/NAME             sets repository.url in _config.yml, and the rest by it
    python -m book.make.publish OWNER/NAME --dry-run   says which files would change
    python -m book.make.publish                        the rest alone, as _config.yml has it

By it: the first cell of every notebook, which installs the course where it is opened without it, in Colab, Kaggle or
Binder; the package's address in both pyproject.toml; the citation; in the README a link to the site, what to clone, and
whole addresses of its pictures, as a registry shows the README without the repository around it. The pages' buttons,
launch links and *Report an error* the site makes by itself (book/site/ext/repository.py).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minigrad.files import write_atomic

ID = "install"
# Not on the page, not compared, not run by the tools: it needs the network.
TAGS = ["install", "remove-cell", "nbval-skip", "skip-execution"]
NO_ADDRESS = """raise FileNotFoundError("upload the course's two wheels beside this notebook, in Kaggle as a dataset; "
                        "in its folder this makes them: pip wheel --no-deps -w wheels . ./book")"""
# Without dependencies of the course: JupyterLab is not needed where a notebook is open, and another one would harm it.
SOURCE = """# Where the course is not installed, as in Colab and Kaggle, this installs it.
import os
from importlib.util import find_spec
from pathlib import Path

if find_spec("bert_course") is None:
    found = sorted([*Path().glob("*.whl"), *Path("/kaggle/input").rglob("*.whl")])
    library, course = ([one for one in found if one.name.startswith(name)]
                       for name in ("minigrad_bert", "bert_from_nothing"))
    if not (library and course):
        {otherwise}
    gpu = Path("/proc/driver/nvidia").exists()
    pip = get_ipython().run_line_magic
    pip("pip", f"install -q '{{library[-1]}}{{'[cuda12x]' if gpu else ''}}'")
    pip("pip", f"install -q --no-deps '{{course[-1]}}'")
    if gpu:
        os.environ.setdefault("MINIGRAD_BACKEND", "cupy")  # tensors are made on the GPU"""
OF_THE_ADDRESS = """at = "git+{address}"
        library, course = [f"minigrad-bert @ {{at}}"], [f"bert-from-nothing @ {{at}}#subdirectory=book"]"""


def site_address(repository: str) -> str:
    """Where GitHub Pages serves a repository: https://OWNER.github.io/NAME/; nothing for another host."""
    found = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+?)(?:\.git)?", repository)
    if not found:
        return ""
    owner, name = found[1].lower(), found[2]
    own = name.lower() == f"{owner}.github.io"
    return f"https://{owner}.github.io/" + ("" if own else f"{name}/")


# --- Each file -------------------------------------------------------------------------------------------

URL = re.compile(r"^(repository:\n(?:[ \t]+.*\n|[ \t]*#.*\n|\n)*?[ \t]+url:)[ \t]*(.*)$", re.MULTILINE)


def repository_url(config: Path) -> str:
    """`repository.url` of a `_config.yml`, empty if it is not set.

    Raises ValueError where the file has no such line.
    """
    found = URL.search(config.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{config} has no repository.url")
    return re.sub(r"\s+#.*", "", found[2]).strip().strip("\"'").rstrip("/")


def install_cell(address: str) -> Any:
    """The cell that installs the course: from wheels that lie beside the notebook, else from the repository if any."""
    from nbformat.v4 import new_code_cell

    otherwise = OF_THE_ADDRESS.format(address=address) if address else NO_ADDRESS.replace("\n", "\n        ")
    return new_code_cell(SOURCE.format(otherwise=otherwise), id=ID, metadata={"tags": list(TAGS)})


def put_install_cell(notebook: Any, address: str) -> bool:
    """Let the first cell with code install the course from a repository; without an address, take such a cell out.

    Returns whether the notebook had to be changed.
    """
    wanted = [cell for cell in notebook.cells if "install" not in cell.metadata.get("tags", [])]
    if address:
        insert(install_cell(address), wanted)
    if [(cell.id, cell.source) for cell in wanted] == [(cell.id, cell.source) for cell in notebook.cells]:
        return False
    notebook.cells = wanted
    return True


def insert(cell: Any, cells: list[Any]) -> None:
    """Put a cell before the first one with code."""
    cells.insert(next((i for i, one in enumerate(cells) if one.cell_type == "code"), len(cells)), cell)


def with_address(pyproject: str, address: str) -> str:
    """The text of a pyproject.toml with the repository's address, or without one if that is empty."""
    text = re.sub(r'\[project\.urls\]\nRepository = ".*"\n\n', "", pyproject)
    urls = f'[project.urls]\nRepository = "{address}"\n\n' if address else ""
    return re.sub(r"^(?=\[tool\.)", urls, text, count=1, flags=re.MULTILINE)


def with_citation(citation: str, address: str) -> str:
    """The text of CITATION.cff with the addresses of repository and site, or without."""
    text = re.sub(r"^(?:repository-code|url): .*\n", "", citation, flags=re.MULTILINE)
    lines = f'repository-code: "{address}"\n' if address else ""
    if site := site_address(address):
        lines += f'url: "{site}"\n'
    return text.replace("license:\n", f"{lines}license:\n", 1)


def with_links(readme: str, address: str) -> str:
    """The README's text with what to clone, a link to the site, whole addresses of its pictures; or without.

    Pictures are those of the branch main.
    """
    where = f"{address}/raw/main/" if address else ""
    text = re.sub(r'((?:src|srcset)=")(?:[^"]*/raw/main/)?(?=book/)', rf"\g<1>{where}", readme)
    text = re.sub(r"\*\*\[Read the course\]\(.*\)\*\*.*\n\n", "", text)
    site = site_address(address)
    line = f"**[Read the course]({site})**: every chapter and exercise runs there.\n\n" if site else ""
    text = text.replace("<picture>\n", f"{line}<picture>\n", 1)
    text = re.sub(r"^git clone .*\n", "", text, flags=re.MULTILINE)
    clone = f"git clone {address} && cd {address.rpartition('/')[2]}\n" if address else ""
    return text.replace("```sh\n", f"```sh\n{clone}", 1)


FILES: dict[str, Callable[[str, str], str]] = {
    "pyproject.toml": with_address,
    "book/pyproject.toml": with_address,
    "CITATION.cff": with_citation,
    "README.md": with_links,
}


def put(root: Path, address: str, write: bool = True) -> list[str]:
    """Let all that hangs on the address have it, or have none; returns the files that had another one."""
    from book.make import notebooks

    changed = []
    for name, edited in FILES.items():
        text = (root / name).read_text(encoding="utf-8")
        if edited(text, address) != text:
            changed.append(name)
            if write:
                write_atomic(root / name, edited(text, address).encode())
    for folder in ("book", "solutions", "exercises"):
        for path in sorted((root / folder).glob("*.ipynb")):
            notebook = notebooks.read(path)
            if put_install_cell(notebook, address):
                changed.append(f"{folder}/{path.name}")
                if write:
                    notebooks.write(path, notebook)
    return changed


# --- The command -----------------------------------------------------------------------------------------

BY_HAND = """Two settings on GitHub, at {address}/settings:
  Pages → Build and deployment → Source: GitHub Actions   (the site is then built by each push to main)
  General → Features: Issues and Discussions              (the pages' links for errors and questions lead there)
Then commit and push; the course will be at {site}"""


def full_address(text: str) -> str:
    """https://github.com/OWNER/NAME of OWNER/NAME or of that address. Raises argparse's error for anything else."""
    found = re.fullmatch(
        r"(?:https://github\.com/)?([A-Za-z0-9][A-Za-z0-9-]*/[\w.-]+?)(?:\.git)?/?", text, re.ASCII
    )
    if not found:
        raise argparse.ArgumentTypeError(
            f"a repository on GitHub is OWNER/NAME, such as ada/bert, got {text!r}"
        )
    return f"https://github.com/{found[1]}"


def main(arguments: Any = None) -> int:
    """Set the address, or bring all files in step with it; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", type=full_address, nargs="?", help="OWNER/NAME on GitHub")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, say what would change")
    options = parser.parse_args(arguments)
    root, config = Path.cwd(), Path("_config.yml")
    try:
        before = repository_url(config)
    except (OSError, ValueError) as error:
        print(f"{error}: run this in the course's folder", file=sys.stderr)
        return 1
    address = before if options.repository is None else options.repository
    changed = put(root, address, write=not options.dry_run)
    if address != before:
        changed.insert(0, config.name)
        if not options.dry_run:
            text = URL.sub(rf'\1 "{address}"', config.read_text(encoding="utf-8"), count=1)
            write_atomic(config, text.encode())
    verb = "would change" if options.dry_run else "changed"
    print("\n".join(f"{verb}: {name}" for name in changed) or "every file is as _config.yml says")
    if options.repository is not None:
        print(BY_HAND.format(address=address, site=site_address(address)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
