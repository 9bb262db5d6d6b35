"""The page "Ask the model": the directives that write it, and the script with the model's weights.

    ```{ask-the-model} start stories
    ```

puts the widget there, with the stored models of these names, the first of them chosen; with the option
`:short:` only its guesses, and the model is loaded when it is asked. `beat-the-model` is the game with that of stories.
`facts-of-the-model` says what a model is. Nothing
of them is stored twice: the scripts are written when the site is built. The page alone gets the styles and scripts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import live_game
import live_model
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from bert_course.common import live_examples
from bert_course.stored import stored
from minigrad.stories import floors, grammar, lexicon


class AskTheModel(SphinxDirective):
    """The widget, with one example that stands there without a script."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"short": directives.flag}

    def run(self) -> list[nodes.Node]:
        """The widget's HTML."""
        names = self.arguments[0].split()
        for name in names:
            depends(self, name)
        self.env.metadata[self.env.docname]["ask"] = names
        up = "../" * self.env.docname.count("/")
        scripts = {name: f"{up}_static/{live_model.script_name(name)}" for name in names}
        text = live_model.page(scripts, short="short" in self.options)
        return [nodes.raw("", text, format="html")]


class BeatTheModel(SphinxDirective):
    """The game. The page has the widget too, with this model among its own."""

    def run(self) -> list[nodes.Node]:
        """Its HTML."""
        self.env.note_dependency(str(live_game.__file__))
        depends(self, "stories")
        self.env.metadata[self.env.docname]["beat"] = True
        up = "../" * self.env.docname.count("/")
        text = live_game.page(f"{up}_static/{live_model.script_name('stories')}")
        return [nodes.raw("", text, format="html")]


class FactsOfTheModel(SphinxDirective):
    """What the model is: sizes, text, loss."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A list in HTML."""
        depends(self, self.arguments[0])
        return [nodes.raw("", live_model.facts(self.arguments[0]), format="html")]


def depends(directive: SphinxDirective, name: str) -> None:
    """Read the page again when the model or what writes it has changed."""
    sources = [module.__file__ for module in (live_model, live_examples, floors, grammar, lexicon)]
    for path in (*sources, *stored(name).iterdir()):
        directive.env.note_dependency(str(path))


def add_files(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the page that asks a model its style and its scripts."""
    if app.env.metadata.get(page, {}).get("ask"):
        app.add_css_file("ask.css")
        app.add_js_file("bert.js", loading_method="defer")
        app.add_js_file("ask.js", loading_method="defer")
    if app.env.metadata.get(page, {}).get("beat"):
        app.add_js_file("beat.js", loading_method="defer")


def write(app: Any, error: Exception | None) -> None:
    """Write the script of each model that a page asks."""
    if error is not None or app.builder.name != "html":
        return
    for name in {name for one in app.env.metadata.values() for name in one.get("ask", ())}:
        path = Path(app.outdir) / "_static" / live_model.script_name(name)
        path.write_text(live_model.model_script(name), encoding="utf-8")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_directive("ask-the-model", AskTheModel)
    app.add_directive("beat-the-model", BeatTheModel)
    app.add_directive("facts-of-the-model", FactsOfTheModel)
    app.connect("html-page-context", add_files)
    app.connect("build-finished", write)
