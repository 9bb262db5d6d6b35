"""What there is with the repository's address alone. `_config.yml` has it in one place, `repository.url`.

With it: buttons to launch, edit and report, launch links of the exercises, links from quoted code to its file, the
site's own address. Without it none of these is on any page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from book.make.publish import site_address

BUTTONS = ("use_repository_button", "use_issues_button", "use_edit_page_button")


def use_address(app: Any, config: Any) -> None:
    """With the address, all buttons; without it there is nothing to launch, edit or report to."""
    options = config.html_theme_options
    address = str(options.get("repository_url") or "").rstrip("/")
    options["repository_url"] = config.course_repository = address
    config.course_branch = options.get("repository_branch") or "main"
    if address:
        options.update(dict.fromkeys(BUTTONS, True))
        config.html_baseurl = config.html_baseurl or site_address(address)
    else:
        options["launch_buttons"] = {}


def launch_addresses(config: Any, path: str) -> list[tuple[str, str]]:
    """Colab and Binder for a notebook of the repository, by name; none without the repository's address."""
    found = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?", config.course_repository)
    if not found:
        return []
    launch, repository, branch = config.html_theme_options["launch_buttons"], found[1], config.course_branch
    addresses = []
    if colab := launch.get("colab_url"):
        addresses.append(("Colab", f"{colab}/github/{repository}/blob/{branch}/{path}"))
    if binder := launch.get("binderhub_url"):
        addresses.append(("Binder", f"{binder}/v2/gh/{repository}/{branch}?urlpath=lab/tree/{path}"))
    return addresses


class SourceLinks(SphinxPostTransform):
    """Names of files in the repository link there; of a listing of `show`, to its lines."""

    default_priority = 320
    formats = ("html",)
    FILE = re.compile(r"(?:minigrad|tests|book|exercises|solutions)/[\w/.-]+\.\w+")

    def run(self, **options: Any) -> None:
        """Sphinx calls this for each page."""
        if not self.config.course_repository:
            return
        for name in list(self.document.findall(nodes.literal)):
            path = name.astext()
            file = Path(self.app.srcdir) / path
            inside_link = any(isinstance(above, nodes.reference | nodes.title) for above in ancestors(name))
            if inside_link or not self.FILE.fullmatch(path) or not file.is_file():
                continue
            address = f"{self.config.course_repository}/blob/{self.config.course_branch}/{path}"
            address += lines_of(file.read_text(encoding="utf-8"), listing_after(name))
            link = nodes.reference("", "", refuri=address, internal=False, classes=["course-source"])
            name.parent.replace(name, link)
            link += name


def ancestors(node: nodes.Node) -> list[nodes.Node]:
    """What a node lies in, from the inside out."""
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def listing_after(name: nodes.literal) -> str:
    """The listing below "From `path`:", as `show` puts it out; empty for a name in a sentence."""
    emphasis, paragraph = name.parent, name.parent.parent
    if not (isinstance(emphasis, nodes.emphasis) and emphasis.astext().startswith("From ")):
        return ""
    block = paragraph.next_node(nodes.literal_block, descend=False, siblings=True)
    return block.astext() if block is not None else ""


def lines_of(text: str, listing: str) -> str:
    """ "#L10-L22" where the file has these lines one after the other, at whatever indentation; else nothing."""
    wanted = [line.strip() for line in listing.strip().split("\n")]
    while wanted and wanted[0] == "...":
        wanted.pop(0)
    while wanted and wanted[-1] == "...":
        wanted.pop()
    there = [line.strip() for line in text.split("\n")]
    for first in range(len(there) - len(wanted) + 1):
        if any(wanted) and there[first : first + len(wanted)] == wanted:
            return f"#L{first + 1}-L{first + len(wanted)}"
    return ""


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_config_value("course_repository", "", "env")
    app.add_config_value("course_branch", "main", "env")
    app.connect("config-inited", use_address)
    app.add_post_transform(SourceLinks)
