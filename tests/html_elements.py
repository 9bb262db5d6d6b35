"""HTML as a list of its elements, for tests of pages that Python writes."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"img", "input", "br", "meta"}


class Page(HTMLParser):
    """HTML as a list of (tag, attributes, text of its own); fails where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.within: list[list[str]] = []  # of each element, also the text of those in it
        self.open: list[int] = []
        self.feed(text)
        self.close()
        assert not self.open, f"{self.elements[self.open[-1]][0]} is not closed"

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute of {tag} is there twice"
        self.elements.append((tag, dict(attrs), []))
        self.within.append([])
        if tag not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        opened = self.elements[self.open.pop()][0]
        assert opened == tag, f"</{tag}> closes {opened}"

    def handle_data(self, data):
        if self.open:
            self.elements[self.open[-1]][2].append(data)
        for place in self.open:
            self.within[place].append(data)

    def all(self, tag, **attributes):
        """The attributes and the own text of each element of this tag and these attributes."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            (own, "".join(text))
            for name, own, text in self.elements
            if name == tag and wanted.items() <= own.items()
        ]

    def texts(self, tag):
        """All text within each element of this tag."""
        both = zip(self.elements, self.within, strict=True)
        return ["".join(text) for (name, _, _), text in both if name == tag]

    def one(self, tag, **attributes):
        """The only such element."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of {tag} {attributes}"
        return found[0]
