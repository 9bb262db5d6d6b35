// A stand-in for the worker with Python: it speaks the same messages and knows a few lines, so that tests are quick.
//
//   print("text")          a stream          html("<b>text</b>"), markdown("*text*")    a result
//   name = anything        binds a name      use(name)    fails if no cell bound it
//   train(5)               five steps, each in a picture of its own that takes the place of the last; can be paused
//   while True: ...        never ends        1 / 0        an error       die()    Python cannot go on
//   check.name(name)       right if the cell that bound the name says "right"
let bound = new Map();

const say = (message) => postMessage(message);

function told(line, source, output) {
  const text = (pattern) => (line.match(pattern) || [])[1];
  const shown = (kind, value) => output({ output_type: "execute_result", data: { [kind]: value, "text/plain": "text" }, metadata: {} });
  const failure = (ename, evalue) => {
    output({ output_type: "error", ename, evalue, traceback: [`${ename}: ${evalue}`] });
    return true;
  };
  if (text(/^print\("(.*)"\)/) !== undefined) output({ output_type: "stream", name: "stdout", text: `${text(/^print\("(.*)"\)/)}\n` });
  else if (text(/^html\("(.*)"\)$/)) shown("text/html", text(/^html\("(.*)"\)$/));
  else if (text(/^markdown\("(.*)"\)$/)) shown("text/markdown", text(/^markdown\("(.*)"\)$/).replaceAll("\\n", "\n"));
  else if (line === "1 / 0") return failure("ZeroDivisionError", "division by zero");
  else if (text(/^use\((\w+)\)/)) {
    const name = text(/^use\((\w+)\)/);
    if (!bound.has(name)) return failure("NameError", `name '${name}' is not defined`);
    output({ output_type: "stream", name: "stdout", text: `${name} is ${bound.get(name)}\n` });
  } else if (text(/^check\.\w+\((\w+)\)/)) {
    const verdict = /right/.test(bound.get(text(/^check\.\w+\((\w+)\)/)) || "") ? "right" : "wrong";
    const hint = verdict === "wrong" ? "<details><summary>Hint 1 of 2</summary><p>A hint.</p></details>" : "";
    output({ output_type: "display_data", data: { "text/html": `<div class="course-check is-${verdict}"><p>${verdict}</p>${hint}<p>Where to go.</p></div>` }, metadata: {} });
  } else if (text(/^(?:def )?(\w+)(?: =|\()/)) bound.set(text(/^(?:def )?(\w+)(?: =|\()/), source.replace(/^\w+ = /, ""));
  return false;
}

let paused = false;
let steps = 0;

async function train(count, tag) {
  const shown = (kind) => say({ type: "output", tag, output: { output_type: kind, data: { "text/html": `<b>step ${steps}</b>`, "text/plain": `step ${steps}` }, metadata: {}, transient: { display_id: `display ${tag}` } } });
  shown("display_data");
  say({ type: "slices", tag });
  for (paused = false; count && !paused; count--) {
    steps += 1;
    shown("update_display_data");
    await new Promise((next) => setTimeout(next, 100));
  }
  say({ type: "done", tag, seconds: 0.25, failed: false, paused });
}

onmessage = ({ data }) => {
  if (data.type === "load") {
    say({ type: "progress", text: "half of it", share: 0.5 });
    setTimeout(() => say({ type: "ready", seconds: 0.1 }), 150);
  } else if (data.type === "forget") bound = new Map();
  else if (data.type === "pause") paused = true;
  else if (data.type === "run") {
    const { source, tag } = data;
    if (/^while True/m.test(source)) return;
    const asked = source.match(/^train\((\d+)\)$/);
    if (asked) return train(Number(asked[1]), tag);
    if (/^die\(\)/m.test(source)) return say({ type: "broken", text: "out of memory" });
    const output = (one) => say({ type: "output", tag, output: one });
    const failed = source.split("\n").some((line) => told(line, source, output));
    say({ type: "done", tag, seconds: 0.25, failed });
  }
};
