// Python in colours, for code that the reader edits: the classes are those that Pygments gives the author's code.
course.highlight = (function () {
  const KEYWORDS = words("and as assert async await break class continue def del elif else except finally for from global "
    + "if import in is lambda nonlocal not or pass raise return try while with yield");
  const CONSTANTS = words("True False None");
  const IN_WORDS = words("and in is not or");
  const BUILTINS = words("abs all any bool bytes callable chr classmethod complex dict dir divmod enumerate filter float format "
    + "frozenset getattr hasattr hash hex id input int isinstance issubclass iter len list map max min next object open ord "
    + "pow print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip");
  const TOKEN = new RegExp([
    /(?<comment>#[^\n]*)/,
    /(?<string>(?<!\w)[rbfu]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?))/,
    /(?<decorator>(?<=^|\n)[ \t]*@[\w.]+)/,
    /(?<float>(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:e[+-]?\d+)?|\d[\d_]*e[+-]?\d+)/i,
    /(?<integer>0[xob][\da-f_]+|\d[\d_]*)/i,
    /(?<name>[^\W\d]\w*)/u,
    /(?<operator>[-+*/%@&|^~<>=!]+)/,
    /(?<punctuation>[()[\]{},:.;\\]+)/,
  ].map((one) => one.source).join("|"), "giu");

  function words(text) {
    return new Set(text.split(" "));
  }

  function escaped(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  function kindOf(groups, before) {
    if (groups.comment) return "c1";
    if (groups.decorator) return "nd";
    if (groups.float) return "mf";
    if (groups.integer) return "mi";
    if (groups.operator) return "o";
    if (groups.punctuation) return "p";
    if (groups.string) return /^\w*"/.test(groups.string) ? "s2" : "s1";
    if (CONSTANTS.has(groups.name)) return "kc";
    if (IN_WORDS.has(groups.name)) return "ow";
    if (groups.name === "import" || groups.name === "from") return "kn";
    if (KEYWORDS.has(groups.name)) return "k";
    if (before === "def") return "nf";
    if (before === "class") return "nc";
    if (before !== "." && BUILTINS.has(groups.name)) return "nb";
    if (groups.name === "self") return "bp";
    return "n";
  }

  return function highlight(source) {
    let html = "";
    let last = 0;
    let before = ""; // the name or the point before this token
    for (const found of source.matchAll(TOKEN)) {
      html += escaped(source.slice(last, found.index));
      html += `<span class="${kindOf(found.groups, before)}">${escaped(found[0])}</span>`;
      before = found[0];
      last = found.index + found[0].length;
    }
    return html + escaped(source.slice(last));
  };
})();
