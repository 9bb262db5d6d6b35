// What a cell puts out, as the site's pages show stored outputs: the elements and classes are those of MyST-NB.
course.outputs = (function () {
  const KINDS = ["text/html", "image/svg+xml", "image/png", "text/markdown", "text/latex", "text/plain"]; // the first there is
  const ANSI = /\x1b\[[0-9;]*[A-Za-z]/g;

  function element(tag, classes = "", ...children) {
    const made = document.createElement(tag);
    if (classes) made.className = classes;
    made.append(...children);
    return made;
  }

  const joined = (text) => (Array.isArray(text) ? text.join("") : String(text));

  function textBox(classes, text) {
    const pre = element("pre", "", joined(text).replace(ANSI, ""));
    return element("div", `output ${classes} notranslate`, element("div", "highlight", pre));
  }

  // HTML whose scripts run where they stand: they find themselves by document.currentScript.
  function htmlBox(html) {
    const box = element("div", "output text_html");
    box.innerHTML = joined(html);
    return box;
  }

  function startScripts(box) {
    for (const still of box.querySelectorAll("script")) {
      const script = document.createElement("script");
      for (const { name, value } of still.attributes) script.setAttribute(name, value);
      script.textContent = still.textContent;
      still.replaceWith(script);
    }
  }

  // --- Markdown: what the course's helpers put out, paragraphs, emphasis, code and formulas -----------------

  const INLINE = /`(?<code>[^`]+)`|\*\*(?<strong>.+?)\*\*|\*(?<em>.+?)\*|\$(?<math>[^$]+)\$/gs;

  function formula(tex, display) {
    const [open, close] = display ? ["\\[", "\\]"] : ["\\(", "\\)"];
    return element(display ? "div" : "span", "math notranslate nohighlight", `${open}${tex}${close}`);
  }

  function inline(text) {
    const nodes = [];
    let last = 0;
    for (const found of text.matchAll(INLINE)) {
      const { code, strong, em, math } = found.groups;
      nodes.push(text.slice(last, found.index));
      if (code) nodes.push(element("code", "docutils literal notranslate", element("span", "pre", code)));
      else if (math) nodes.push(formula(math, false));
      else nodes.push(element(strong ? "strong" : "em", "", ...inline(strong || em)));
      last = found.index + found[0].length;
    }
    return [...nodes, text.slice(last)];
  }

  function listing(language, code) {
    const pre = element("pre");
    pre.innerHTML = `<span></span>`;
    if (language === "python") pre.innerHTML += `${course.highlight(code)}\n`;
    else pre.append(`${code}\n`);
    return element("div", `highlight-${language || "text"} notranslate`, element("div", "highlight", pre));
  }

  function markdown(text) {
    const nodes = [];
    for (const part of joined(text).split(/^(```[^]*?^```|\$\$[^]*?\$\$)[ \t]*$/m)) {
      const code = part.match(/^```(\w*)\n([^]*?)\n?```$/);
      const display = part.match(/^\$\$([^]*)\$\$$/);
      if (code) nodes.push(listing(code[1], code[2]));
      else if (display) nodes.push(formula(display[1], true));
      else for (const one of part.split(/\n\s*\n/).filter((one) => one.trim())) nodes.push(element("p", "", ...inline(one.trim())));
    }
    return nodes;
  }

  // --------------------------------------------------------------------------------------------------------

  function rich(data) {
    const kind = KINDS.find((one) => one in data);
    const value = kind ? data[kind] : "";
    if (kind === "text/html" || kind === "image/svg+xml") return [htmlBox(value)];
    if (kind === "image/png") {
      const image = element("img");
      image.src = `data:image/png;base64,${joined(value).trim()}`;
      image.alt = joined(data["text/plain"] || "a picture");
      return [element("div", "output image_png", image)];
    }
    if (kind === "text/markdown") return markdown(value);
    if (kind === "text/latex") return [formula(joined(value).replace(/^\$+|\$+$/g, ""), true)];
    return [textBox("text_plain highlight-myst-ansi", value)];
  }

  function nodesOf(output) {
    if (output.output_type === "error") {
      return [textBox("traceback highlight-ipythontb", (output.traceback || []).join("\n") || `${output.ename}: ${output.evalue}`)];
    }
    return rich(output.data || {});
  }

  return {
    element,

    // Put an output to those of its cell: one that is updated takes the place of what it was.
    keep(outputs, output) {
      if (output.output_type !== "update_display_data") return outputs.push(output);
      const old = outputs.find((one) => one.transient && one.transient.display_id === output.transient.display_id);
      if (old) Object.assign(old, { data: output.data, metadata: output.metadata });
      return outputs.length;
    },

    // Add an output to a box that is in the page. Pieces of one stream are one text.
    add(box, output) {
      if (output.output_type === "stream") {
        const last = box.lastElementChild;
        const text = joined(output.text).replace(ANSI, "");
        if (last && last.dataset.stream === output.name) last.querySelector("pre").append(text);
        else {
          const made = textBox(`${output.name === "stderr" ? "stderr" : "stream"} highlight-myst-ansi`, text);
          made.dataset.stream = output.name;
          box.append(made);
        }
        return;
      }
      const nodes = nodesOf(output);
      const name = output.transient && output.transient.display_id;
      const there = name && [...box.children].filter((one) => one.dataset.display === name);
      if (name) nodes.forEach((node) => { node.dataset.display = name; }); // a later one may take their place
      if (there && there.length) {
        there[0].before(...nodes);
        there.forEach((node) => node.remove());
      } else box.append(...nodes);
      nodes.forEach(startScripts);
      const formulas = nodes.filter((node) => node.matches(".math") || node.querySelector(".math"));
      if (formulas.length && window.MathJax && MathJax.typesetPromise) MathJax.typesetPromise(formulas);
    },
  };
})();
