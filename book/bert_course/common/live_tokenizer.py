"""A tokenizer in the page: the reader types a text and sees the pieces that BERT would read.

The vocabulary and the tables of `minigrad.text.normalization` go into the cell's output; a few lines of JavaScript do
with them what `WordPieceTokenizer` does, on any text. The first element of the output has that function for other
scripts: `document.querySelector(".course-tokenizer").tokenize("a text")` gives a list of {piece, id, continues},
`words` the words as BERT spells them, `cut` the pieces of such a word.
"""

from __future__ import annotations

import html
import json

from bert_course.common.palette import STYLE
from minigrad.text.normalization import unicode_tables
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import CONTINUES, SPECIAL_TOKENS, UNK


class LiveTokenizer:
    """A field for a text, and its pieces, to be the last line of a cell; until its script runs, those of `text`."""

    def __init__(self, tokenizer: WordPieceTokenizer, text: str) -> None:
        self.tokenizer, self.text = tokenizer, text
        self.pieces = tokenizer.tokenize(text)

    def _repr_html_(self) -> str:
        script = _SCRIPT.replace("STATE", _state(self.tokenizer))
        return (
            f'<div class="course-tokenizer course-colours">{STYLE}{_STYLE}'
            f'<label hidden>Your text <input type="text" value="{html.escape(self.text)}" maxlength="400" '
            'autocomplete="off" spellcheck="false"></label>'
            f'<p class="pieces">{"".join(map(self._chip, self.pieces))}</p>'
            f'<p class="counts" aria-live="polite">{self._counts()}</p><script>{script}</script></div>'
        )

    def _chip(self, piece: str) -> str:
        kinds = [name for name, is_so in (("more", _continues(piece)), ("unknown", piece == UNK)) if is_so]
        of_kind = f' class="{" ".join(kinds)}"' if kinds else ""
        number = self.tokenizer.token_to_id(piece)
        return f"<span{of_kind}>{html.escape(piece)}<small>{number}</small></span>"

    def _counts(self) -> str:
        words = sum(not _continues(piece) for piece in self.pieces)
        return f"{words} words and marks, {len(self.pieces)} pieces, {self.pieces.count(UNK)} unknown"

    def __repr__(self) -> str:
        numbers = [f"{piece} {self.tokenizer.token_to_id(piece)}" for piece in self.pieces]
        return f"{self.text}\n{' | '.join(numbers)}\n{self._counts()}"


live_tokenizer = LiveTokenizer  # in a page


def tokenizer_script(tokenizer: WordPieceTokenizer) -> str:
    """The tokenizer alone, as JavaScript for an object with `tokenize`, `words`, `cut`, and the `pieces` by id."""
    begin = f"(function () {{\n  var state = {_state(tokenizer)};\n"
    return begin + '  var root = {pieces: state.vocab.split("\\n")};\n' + _TOKENIZE + "  return root;\n})()"


def _state(tokenizer: WordPieceTokenizer) -> str:
    """What the script knows of a tokenizer, in JSON that may stand inside <script>."""
    tables = unicode_tables()
    if not tokenizer.tokenize_chinese_chars:
        tables["chinese"] = ""  # no character is one
    state = {
        "vocab": "\n".join(tokenizer.vocab),
        "special": SPECIAL_TOKENS,
        "lower": tokenizer.lower_case,
        "strip": tokenizer.lower_case if tokenizer.strip_accents is None else tokenizer.strip_accents,
        "longest": tokenizer.max_input_chars_per_word,
        "tables": tables,
    }
    return json.dumps(state).replace("<", "\\u003c")


def _continues(piece: str) -> bool:
    return piece.startswith(CONTINUES)


_STYLE = """<style>
.course-tokenizer {max-width: 36rem; margin: 0.5rem auto}
.course-tokenizer label {display: block}
.course-tokenizer label[hidden] {display: none}
.course-tokenizer input {
  display: block; width: 100%; box-sizing: border-box; font: inherit; color: inherit; background: none;
  border: 1px solid rgba(128, 128, 128, 0.8); border-radius: 4px; padding: 0.3rem 0.5rem}
.course-tokenizer input:focus-visible {outline: 2px solid var(--course-second); outline-offset: 1px}
.course-tokenizer .pieces {min-height: 6rem; margin: 0.6rem 0 0.2rem; line-height: 1}
.course-tokenizer .pieces span {
  display: inline-block; text-align: center; border: 1px solid var(--course-token); border-radius: 4px;
  padding: 0.25rem 0.35rem; margin: 0 0 0.4rem 0.45rem; font-family: monospace; font-size: 0.95rem;
  white-space: pre; max-width: 100%; overflow-x: auto}
.course-tokenizer .pieces .more {margin-left: 0.1rem; border-style: dashed}
.course-tokenizer .pieces .unknown {border-color: var(--course-wrong); color: var(--course-wrong)}
.course-tokenizer .pieces small {display: block; font-size: 0.7rem; margin-top: 0.2rem; color: var(--course-token)}
.course-tokenizer .counts {font-size: 0.9rem; margin: 0}
@media print {.course-tokenizer label {display: none}}
</style>"""

# Needs `state` and a `root` that gets the functions.
_TOKENIZE = r"""  var ids = new Map(state.vocab.split("\n").map((piece, id) => [piece, id])), most = 0;
  ids.forEach((id, piece) => { most = Math.max(most, Array.from(piece).length); });
  var sets = {}, capitals = {};
  var newCapitals = state.tables.capitals;
  delete state.tables.capitals;
  for (var name in state.tables) sets[name] = new RegExp("[" + state.tables[name].replace(
    /[0-9a-f]+/g, code => "\\u{" + code + "}").replace(/ /g, "") + "]", "u");
  newCapitals.split(" ").forEach(function (pair) {
    var codes = pair.split("-").map(code => String.fromCodePoint(parseInt(code, 16)));
    capitals[codes[0]] = codes[1];
  });
  var classes = Object.keys(sets).filter(name => name.startsWith("class "));
  var is = (name, c) => sets[name].test(c);
  function combining(c) { return +classes.find(name => is(name, c)).slice(6); }

  function withoutAccents(text) {
    var letters = [], marks = [];
    for (var c of text) {
      if (c.length === 1 || is("decomposed", c)) letters.push(...c.normalize("NFD"));
      else letters.push(c);
    }
    // Sorting neighbouring marks by their class: an accent of class 0 parts them, the others go first.
    letters = letters.filter(c => !is("accents", c) || is("separating", c)).concat("");
    var sorted = "";
    for (c of letters) {
      if (c && is("marks that stay", c)) { marks.push([combining(c), c]); continue; }
      marks.sort((a, b) => a[0] - b[0]);
      sorted += marks.map(mark => mark[1]).join("") + c;
      marks = [];
    }
    return Array.from(sorted).filter(c => !is("accents", c)).join("");
  }

  function words(text) {
    var spelled = "", found = [], open = false;
    for (var c of text) {
      if (is("control", c)) continue;
      spelled += is("white space", c) ? " " : is("chinese", c) ? " " + c + " " : c;
    }
    if (state.strip) spelled = withoutAccents(spelled);
    // One character at a time, so that Σ at the end of a word is σ too; `capitals` are newer than some browsers.
    if (state.lower) spelled = Array.from(spelled, c => (capitals[c] || c).toLowerCase()).join("");
    for (c of spelled) {
      if (is("white space", c)) open = false;
      else if (is("punctuation", c)) { found.push(c); open = false; }
      else if (open) found[found.length - 1] += c;
      else { found.push(c); open = true; }
    }
    return found;
  }

  function cut(word) {
    var letters = Array.from(word), pieces = [], start = 0;
    var unknown = [{piece: "[UNK]", id: ids.get("[UNK]"), continues: false}];
    if (letters.length > state.longest) return unknown;
    while (start < letters.length) {
      for (var end = Math.min(letters.length, start + most), piece; end > start; end--) {
        piece = (start ? "##" : "") + letters.slice(start, end).join("");
        if (ids.has(piece)) break;
      }
      if (end === start) return unknown;
      pieces.push({piece: piece, id: ids.get(piece), continues: start > 0});
      start = end;
    }
    return pieces;
  }

  root.words = words;
  root.cut = cut;
  root.tokenize = function (text) {
    var special = new RegExp("(" + state.special.map(token => token.replace(/\W/g, "\\$&")).join("|") + ")");
    return text.split(special).flatMap(part => state.special.includes(part)
      ? [{piece: part, id: ids.get(part), continues: false}] : words(part).flatMap(cut));
  };
"""

_SCRIPT = (
    r"""
(function () {
  var root = document.currentScript.parentElement, state = STATE;
  var field = root.querySelector("input"), room = root.querySelector(".pieces");
"""
    + _TOKENIZE
    + r"""
  function write() {
    var pieces = root.tokenize(field.value), unknown = pieces.filter(p => p.piece === "[UNK]").length;
    room.textContent = "";
    pieces.forEach(function (p) {
      var chip = room.appendChild(document.createElement("span")), id = document.createElement("small");
      chip.textContent = p.piece;
      id.textContent = p.id;
      chip.append(id);
      chip.className = (p.continues ? "more " : "") + (p.piece === "[UNK]" ? "unknown" : "");
    });
    root.querySelector(".counts").textContent = pieces.filter(p => !p.continues).length + " words and marks, " +
      pieces.length + " pieces, " + unknown + " unknown";
  }
  field.addEventListener("input", write);
  root.querySelector("label").hidden = false;
})();
"""
)
