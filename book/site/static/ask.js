// "Ask the model", its page and the first page's box: what the reader types goes through bert.js, and what it says replaces the stored example
// that book/site/ext/live_model.py wrote. Both write the same HTML. A model's script is loaded when it is chosen.
(function () {
  const WAIT = 120; // ms without a key before the model is asked
  const TOP = 5; // guesses for a gap
  const LEVELS = 20; // shades of an attention map: full from a weight of a half on
  const FEW = 1000; // pieces of a vocabulary that can be shown whole
  const NAMED = 5; // unknown words that are named
  const COVER = Infinity; // in place of a piece that was pressed: the chip that covers

  const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

  // The likeliest pieces of a softmax (V): [id, probability] each.
  function best(shares) {
    const top = [];
    shares.forEach((share, id) => {
      if (top.length === TOP && share <= top[TOP - 1][1]) return;
      const at = top.findIndex((other) => share > other[1]);
      top.splice(at < 0 ? top.length : at, 0, [id, share]);
      top.length = Math.min(top.length, TOP);
    });
    return top;
  }

  // weights (T, T) as squares of SVG, a path for each shade.
  function squares(weights, n, row) {
    const paths = Array.from({ length: LEVELS + 1 }, () => "");
    weights.forEach((weight, i) => { paths[Math.round(Math.min(2 * weight, 1) * LEVELS)] += `M${i % n} ${Math.floor(i / n)}h1v1h-1z`; });
    const drawn = paths.map((path, level) => (level && path ? `<path opacity="${level / LEVELS}" d="${path}"/>` : ""));
    const frame = row === undefined ? "" : `<rect x="0" y="${row}" width="${n}" height="1"/>`;
    return `<svg viewBox="0 0 ${n} ${n}" preserveAspectRatio="none" aria-hidden="true">${drawn.join("")}${frame}</svg>`;
  }

  function start(root) {
    const find = (name) => root.querySelector(name);
    const field = find("textarea");
    const map = find(".map");
    const about = JSON.parse(root.dataset.models); // of each model: name, title, script, examples
    const models = {}; // those that are loaded, by name
    const asking = new Set(); // names of those whose scripts are on their way
    const texts = {}; // what was last typed for each
    let current = about[0]; // the one that answers,
    let wanted = current; // and the one that was chosen
    let model = null;
    let timer = 0;
    const alone = root.classList.contains("short"); // the box of the first page: its address says nothing
    let asks = null; // what the address asks for, until its model is there
    let pressed = -1; // the piece that was pressed before the model was there
    let asked = { text: null, read: { pieces: [], dropped: 0 }, gaps: [] }; // what was last read
    let plain = null; // what the model says of it, and
    let without = null; // of it without the hidden piece, or the covered ones
    let hidden = -1; // the place of that piece, or -1
    let covered = 0; // how many pieces are covered, from the right
    let shown = 0; // which gap's guesses are shown: 0 is the first
    let row = 0; // the piece whose attention is shown
    const atRest = find(".after").innerHTML; // beside the first text, until a piece of it is hidden
    let head = find(".head :checked").value.split(" ").map(Number); // layer, head

    // --- Asking ----------------------------------------------------------------------------------------------

    function ask(ids, places) {
      const said = model.forward(ids, places);
      const shares = said.scores.map(CourseBert.softmax);
      return { attention: said.attention, at: new Map(places.map((place, i) => [place, shares[i]])) };
    }

    function readText() {
      clearTimeout(timer);
      if (!model) return;
      root.setAttribute("aria-busy", "false");
      if (field.value === asked.text) return;
      const mask = model.tokenizer.tokenize("[MASK]")[0].id;
      const read = model.read(field.value);
      const gaps = read.pieces.flatMap(({ id }, place) => (id === mask ? [place] : []));
      const example = current.examples.find(({ text }) => text === field.value);
      const unknown = model.unknown(field.value);
      asked = { text: field.value, read, gaps, ids: read.pieces.map(({ id }) => id), mask, best: example && example.best, unknown };
      hidden = -1;
      covered = 0;
      without = null;
      shown = Math.max(0, Math.min(shown, gaps.length - 1));
      row = gaps.length ? gaps[shown] : Math.min(1, read.pieces.length - 1);
      const began = performance.now();
      plain = ask(asked.ids, gaps);
      find(".time").textContent = `${Math.max(1, Math.round(performance.now() - began))} ms in your browser`;
      const all = read.pieces.length + read.dropped;
      find(".counts").textContent = `${read.dropped ? `${read.pieces.length} of ` : ""}${count(all, "piece")}, ${count(gaps.length, "gap")}`;
      draw();
    }

    function hide(place) {
      hidden = place === hidden ? -1 : place;
      covered = 0;
      without = hidden < 0 ? null : ask(asked.ids.map((id, i) => (i === hidden ? asked.mask : id)), [...asked.gaps, hidden]);
      row = hidden >= 0 ? hidden : asked.gaps.length ? asked.gaps[shown] : place;
      draw();
    }

    const isCovered = (place) => place < asked.ids.length - 1 && place >= asked.ids.length - 1 - covered;
    const coverable = () => asked.ids.length - 2 - (asked.gaps.length ? asked.gaps.at(-1) : 0); // what is right of the gap

    function cover(count) {
      hidden = -1;
      covered = Math.max(0, Math.min(count, coverable()));
      without = covered ? ask(asked.ids.map((id, i) => (isCovered(i) ? asked.mask : id)), asked.gaps) : null;
      draw();
    }

    // --- The address ---------------------------------------------------------------------------------------------

    // What is asked, as the address has it after its #: nothing for what stands there at first.
    function address() {
      const said = { model: current.name, text: asked.text, gap: shown || "", hide: hidden < 0 ? "" : hidden, cover: covered || "" };
      const plain = current === about[0] && asked.text === about[0].examples[0].text && !shown && hidden < 0 && !covered;
      return plain ? "" : `#${new URLSearchParams(Object.entries(said).filter(([, value]) => value !== ""))}`;
    }

    function remember() {
      if (alone || asked.text === null || address() === location.hash) return;
      history.replaceState(history.state, "", address() || location.pathname + location.search);
    }

    // What the address asks for.
    function recall() {
      const said = new URLSearchParams(location.hash.slice(1));
      if (!said.has("text")) return null;
      const place = (name) => (/^\d+$/.test(said.get(name) || "") ? Number(said.get(name)) : -1);
      return { model: about.find(({ name }) => name === said.get("model")) || about[0], text: said.get("text").slice(0, field.maxLength), gap: place("gap"), hide: place("hide"), cover: place("cover") };
    }

    function restore(said) {
      if (!said || said.model !== current) return;
      field.value = said.text;
      readText();
      if (said.gap > 0 && said.gap < asked.gaps.length) [shown, row] = [said.gap, asked.gaps[said.gap]];
      if (said.hide > 0 && said.hide < asked.ids.length - 1 && !asked.gaps.includes(said.hide)) hide(said.hide);
      else cover(said.cover);
    }

    // --- Drawing ---------------------------------------------------------------------------------------------

    const name = (id) => safe(model.tokenizer.pieces[id]);
    const seen = () => asked.read.pieces.map(({ piece }, i) => (i === hidden || isCovered(i) ? "[MASK]" : piece));

    // Replaces what stands in a box only if it differs, so that the focus stays.
    function put(box, html) {
      if (box.written !== html) box.innerHTML = box.written = html;
    }

    // The words that the model does not know, named.
    function unknownWords() {
      const { unknown } = asked;
      const names = unknown.slice(0, NAMED).map((word) => `“${word.length > 20 ? `${word.slice(0, 20)}…` : word}”`);
      if (unknown.length > NAMED) names.push(`${unknown.length - NAMED} more`);
      const [all, it] = unknown.length === 1 ? ["is", "it"] : ["are", "each of them"];
      return unknown.length ? `${names.join(", ")} ${all} not in the model’s vocabulary: it reads [UNK] for ${it}.` : "";
    }

    function draw() {
      drawPieces();
      drawLists();
      drawHeads();
      drawMap();
      find(".heard").textContent = heard();
      remember();
    }

    const likely = (shares) => Object.entries(shares).slice(0, TOP).map(([word, share]) => `${word} ${share.toFixed(2)}`).join(", ");

    // What a screen reader says after each answer.
    function heard() {
      const gap = asked.gaps[shown];
      const said = without || plain;
      const [id, share] = gap === undefined ? [] : best(said.at.get(gap))[0];
      const first = gap === undefined ? "No gap." : `Best guess for gap ${shown + 1}: ${model.tokenizer.pieces[id]} ${share.toFixed(2)}.`;
      const possible = asked.best ? ` Best possible: ${likely(asked.best)}.` : "";
      const itself = hidden < 0 ? "" : ` ${find(".itself .quiet").textContent}.`;
      return `${first}${possible}${itself} ${unknownWords()}`.trim();
    }

    function drawPieces() {
      const said = without || plain;
      const focused = root.contains(document.activeElement) && document.activeElement.dataset.place;
      const last = asked.read.pieces.length - 1;
      const cut = asked.read.dropped
        ? `<p class="cut">The model has ${last + 1} places: ${count(asked.read.dropped, "piece")} at the end did not fit.</p>` : "";
      const strange = asked.unknown.length ? `<p class="cut strange">${safe(unknownWords())}</p>` : "";
      put(find(".pieces"), asked.read.pieces.map(({ piece, continues }, i) => {
        const gap = asked.gaps.includes(i);
        const kinds = [gap && "gap", gap && i === asked.gaps[shown] && "shown", (i === hidden || isCovered(i)) && "hidden",
          continues && "more", piece === "[UNK]" && "unknown"].filter(Boolean).join(" ");
        if (i === 0 || i === last) return `<span class="piece fixed">${piece}<small></small></span>`;
        const top = gap ? best(said.at.get(i))[0] : null;
        const note = top ? `${name(top[0])} ${top[1].toFixed(2)}` : "";
        const does = gap ? `gap, best guess ${note}: show its guesses` : i === hidden ? `show ${safe(piece)} again` : `hide ${safe(piece)}`;
        const pressed = gap ? i === asked.gaps[shown] : i === hidden;
        return `<button type="button" class="piece ${kinds}" data-place="${i}" tabindex="-1" aria-pressed="${pressed}" ` +
          `aria-label="${does}">${safe(piece)}<small>${note}</small></button>`;
      }).join("") + cut + strange);
      const slider = find(".cover input");
      slider.max = coverable();
      slider.value = covered;
      slider.disabled = coverable() < 1;
      const buttons = [...root.querySelectorAll("button.piece")];
      const stop = buttons.find((button) => button.dataset.place === focused) || buttons[0];
      if (!stop) return;
      stop.tabIndex = 0; // one stop of the Tab key; the arrow keys go on
      if (focused !== undefined && focused !== false) stop.focus({ preventScroll: true });
    }

    // The likeliest pieces with bars. before: probabilities to set beside them; truth: the piece that was hidden;
    // possible: the best possible probability of each word, where it is known.
    function guesses(shares, before, truth, possible) {
      return `<ol>${best(shares).map(([id, share]) => {
        const was = before ? `<span class="was">${before[id].toFixed(2)} →</span> ` : "";
        const exact = possible ? possible[model.tokenizer.pieces[id]] || 0 : 0;
        const beside = possible ? ` <span class="possible">best <span>possible</span> ${exact.toFixed(2)}</span>` : "";
        const mark = before ? `<i style="--share: ${before[id].toFixed(4)}"></i>`
          : possible ? `<i class="possible" style="--share: ${exact.toFixed(4)}"></i>` : "";
        return `<li style="--share: ${share.toFixed(4)}"${id === truth ? ' class="truth"' : ""}>${mark}<span class="word">${name(id)}</span> ` +
          `<span class="share">${was}${share.toFixed(2)}</span>${beside}</li>`;
      }).join("")}</ol>`;
    }

    function drawLists() {
      const gap = asked.gaps[shown];
      const which = asked.gaps.length > 1 ? `gap ${shown + 1} of ${asked.gaps.length}` : "the gap";
      const title = (text) => `<p class="title">${text}</p>`;
      const quiet = (text) => `<p class="quiet">${text}</p>`;
      const piece = hidden < 0 ? "" : safe(asked.read.pieces[hidden].piece);
      put(find(".before"), gap === undefined
        ? title("Guesses for the gap") + quiet("There is no gap yet. Type an underscore, or press “Insert a gap”.")
        : title(`Guesses for ${which}`) + guesses(plain.at.get(gap), null, null, asked.best));
      put(find(".after"), !without
        ? asked.text === field.defaultValue ? atRest : title("With one piece hidden") + quiet("Press a piece above. The guesses without it will stand here.")
        : title(covered ? "The same, with the right side covered" : `The same, with “${piece}” hidden`) +
          (gap === undefined ? quiet("There is no other gap.") : guesses(without.at.get(gap), plain.at.get(gap))));
      if (hidden < 0) {
        put(find(".itself"), title("The hidden piece") + quiet("The guesses for the piece itself will stand here."));
        return;
      }
      const shares = without.at.get(hidden);
      const truth = asked.ids[hidden];
      const rank = 1 + shares.reduce((above, share) => above + (share > shares[truth]), 0);
      put(find(".itself"), title(`Guesses for “${piece}”`) + guesses(shares, null, truth) +
        quiet(`“${piece}” itself: ${shares[truth].toFixed(shares[truth] < 0.01 ? 4 : 2)}, guess ${rank.toLocaleString("en")} of ${shares.length.toLocaleString("en")}`));
    }

    function drawHeads() {
      const { attention } = without || plain;
      const inputs = root.querySelectorAll(".head input");
      inputs.forEach((input) => {
        const [layer, number] = input.value.split(" ");
        put(input.parentElement.querySelector(".small"), squares(attention[layer][number], asked.ids.length));
      });
    }

    function drawMap() {
      const n = asked.ids.length;
      const names = seen().map(safe);
      const weights = (without || plain).attention[head[0]][head[1]];
      const ofRow = weights.subarray(row * n, (row + 1) * n);
      const span = (text, i) => `<span${i === row ? " class=here" : ""}>${text}</span>`;
      put(map, `<div class="columns">${names.map((text) => `<span>${text}</span>`).join("")}</div>` +
        `<div class="rows">${names.map(span).join("")}</div>${squares(weights, n, row)}`);
      map.style.setProperty("--n", n);
      map.classList.toggle("many", n > 30);
      const most = Array.from(ofRow.keys()).sort((a, b) => ofRow[b] - ofRow[a] || a - b).slice(0, 3);
      const told = most.map((j) => `${names[j]} ${ofRow[j].toFixed(2)}`).join(", ");
      put(find(".says"), `<b>${names[row]}</b> looks most at: ${told}`);
      put(find(".levels"), names.map((text, i) =>
        `<span${i === row ? " class=here" : ""} style="--share: ${ofRow[i].toFixed(2)}">${text}</span>`).join(""));
      map.setAttribute("aria-label", `Attention of layer ${head[0] + 1}, head ${head[1] + 1}: the piece that looks`);
      map.setAttribute("aria-valuemin", 1);
      map.setAttribute("aria-valuemax", n);
      map.setAttribute("aria-valuenow", row + 1);
      map.setAttribute("aria-valuetext", find(".says").textContent);
    }

    // --- Hands -----------------------------------------------------------------------------------------------

    field.addEventListener("input", () => {
      clearTimeout(timer);
      if (model) root.setAttribute("aria-busy", "true");
      timer = setTimeout(readText, WAIT);
    });

    find(".insert").addEventListener("click", () => {
      const before = field.value.slice(0, field.selectionStart);
      const after = field.value.slice(field.selectionEnd);
      const gap = `${/\S$/.test(before) ? " " : ""}[MASK]${/^\w/.test(after) ? " " : ""}`;
      field.focus();
      field.setRangeText(gap, field.selectionStart, field.selectionEnd, "end");
      readText();
    });

    find(".chips").addEventListener("click", ({ target }) => {
      const chip = target.closest(".chip");
      if (!chip) return;
      const { text, cover: covers } = chip.dataset;
      field.value = text;
      shown = 0;
      if (!model) { // the box of the first page
        pressed = covers === undefined ? -1 : COVER;
        return choose(current);
      }
      asked.text = null; // ask again, even the same
      readText();
      if (covers !== undefined) cover(Infinity);
    });

    find(".cover input").addEventListener("input", ({ target }) => cover(Number(target.value)));

    find(".link").addEventListener("click", async ({ target }) => {
      const address = location.href;
      try {
        await navigator.clipboard.writeText(address);
        target.textContent = "Copied";
      } catch {
        prompt("The address of what you see:", address); // a browser that lets no page write there
      }
      setTimeout(() => { target.textContent = "Copy link"; }, 1500);
    });

    find(".pieces").addEventListener("click", (event) => {
      const button = event.target.closest("button.piece");
      if (!button) return;
      button.focus(); // Safari does not by itself
      const place = Number(button.dataset.place);
      if (!asked.gaps.includes(place)) return hide(place);
      shown = asked.gaps.indexOf(place);
      row = place;
      draw();
    });

    find(".pieces").addEventListener("keydown", (event) => {
      const buttons = [...root.querySelectorAll("button.piece")];
      const at = buttons.indexOf(document.activeElement);
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (at < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (!buttons[to]) return;
      buttons[at].tabIndex = -1;
      buttons[to].tabIndex = 0;
      buttons[to].focus();
    });

    find(".heads").addEventListener("change", (event) => {
      head = event.target.value.split(" ").map(Number);
      if (plain) drawMap();
    });

    function look(to) {
      const kept = Math.max(0, Math.min(asked.ids.length - 1, to));
      if (kept === row) return;
      row = kept;
      drawMap();
    }

    function point(event) {
      const box = map.querySelector("svg").getBoundingClientRect();
      if (plain && event.clientY >= box.top && event.clientY < box.bottom) {
        look(Math.floor(((event.clientY - box.top) / box.height) * asked.ids.length));
      }
    }
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
    map.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1, PageUp: -5, PageDown: 5, Home: -999, End: 999 }[event.key];
      if (!plain || !by || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      look(row + by);
    });
    find(".levels").addEventListener("pointerover", (event) => {
      const at = [...find(".levels").children].indexOf(event.target);
      if (plain && at >= 0) look(at);
    });

    // --- The models ------------------------------------------------------------------------------------------

    const radio = (one) => root.querySelector(`.models [value="${one.name}"]`);

    // Lets a model answer: at once if it is here, or when its script has come and it is still wanted.
    function choose(one) {
      wanted = one;
      if (models[one.name]) return use(one);
      if (model) {
        root.setAttribute("aria-busy", "true");
        find(".counts").textContent = "The model is loading.";
        find(".time").textContent = "";
      }
      if (asking.has(one.name)) return;
      asking.add(one.name);
      const script = document.createElement("script");
      script.src = one.script;
      script.onload = () => {
        models[one.name] = new CourseBert(window.courseModels[one.name]);
        if (wanted === one) use(one);
      };
      script.onerror = () => {
        asking.delete(one.name); // choosing it again tries again
        if (wanted === one) missing(one);
      };
      document.head.append(script);
    }

    function missing(one) {
      if (!model) {
        find(".counts").textContent = "The model could not be loaded: this is a stored example.";
        return;
      }
      wanted = current;
      radio(current).checked = true;
      root.setAttribute("aria-busy", "false");
      find(".counts").textContent = `The model “${one.title}” could not be loaded.`;
    }

    function use(one) {
      clearTimeout(timer);
      if (one !== current) {
        texts[current.name] = field.value;
        field.value = texts[one.name] === undefined ? one.examples[0].text : texts[one.name];
        current = one;
        shown = 0;
        find(".chips").innerHTML = one.chips;
      }
      model = models[one.name];
      asked.text = null; // it has read nothing yet
      writeHeads();
      writeWords();
      map.setAttribute("role", "slider");
      map.setAttribute("aria-orientation", "vertical");
      map.tabIndex = 0;
      readText();
      if (pressed === COVER) cover(Infinity);
      else if (pressed > 0 && pressed < asked.read.pieces.length - 1 && !asked.gaps.includes(pressed)) hide(pressed);
      pressed = -1;
      restore(asks);
      asks = null;
    }

    // A choice for each head of the model; the first of the last layer is chosen.
    function writeHeads() {
      const { num_hidden_layers: layers, num_attention_heads: heads } = model.config;
      head = [layers - 1, 0];
      const all = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
      find(".heads").style.setProperty("--heads", heads);
      find(".heads").innerHTML = `<legend>Where each head looks</legend>${all.map(([layer, number]) =>
        `<label class="head"><input type="radio" name="course-head" value="${layer} ${number}"${String([layer, number]) === String(head) ? " checked" : ""}>` +
        `<span class="small"></span><span>layer ${layer + 1}, head ${number + 1}</span></label>`).join("")}`;
    }

    // The vocabulary, where it is small.
    function writeWords() {
      const words = model.tokenizer.pieces.filter((piece) => !/^\[.*\]$/.test(piece));
      const few = words.length < FEW;
      find(".words").hidden = !few;
      find(".words summary").textContent = few ? `The ${words.length} words and marks that it knows` : "";
      find(".words p").textContent = few ? words.join(" ") : "";
    }

    root.querySelectorAll(".models input").forEach((input) => {
      input.addEventListener("change", () => choose(about.find(({ name }) => name === input.value)));
    });
    if (!alone) {
      const read = () => {
        asks = recall();
        if (asks) radio(asks.model) && (radio(asks.model).checked = true);
        choose(asks ? asks.model : current);
      };
      window.addEventListener("hashchange", read);
      return read();
    }
    const wake = ({ target }) => {
      const piece = target.closest(".piece");
      if (piece) pressed = [...piece.parentElement.children].indexOf(piece);
      if (!model) choose(current);
    };
    root.addEventListener("pointerdown", wake);
    root.addEventListener("focusin", wake);
  }

  document.querySelectorAll(".course-ask").forEach(start);
})();
