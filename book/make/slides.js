// Keys: through the frames of a slide's player, then to the next slide; S opens what the speaker says.
const slides = [...document.querySelectorAll(".slide")];
const forward = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
let notes = null;

const here = () => slides.findIndex((one) => one.getBoundingClientRect().bottom > innerHeight / 2);
const slider = (slide) => slide.querySelector(".course-player .controls input[type=range]");

function frame(player, value) {
  player.value = value;
  player.dispatchEvent(new Event("input", { bubbles: true }));
}

// The lines of a flow's step share the height.
function share(slide) {
  slide.style.setProperty("--lines", slide.querySelectorAll(".course-flow .line.now").length || 1);
}

// What is larger than its slide, such as a long table, is made smaller.
function fit() {
  slides.map((slide) => slide.querySelector(".shown")).forEach((shown) => {
    let size = 1;
    for (let tries = 0; tries < 6; tries++) { // not all of it shrinks alike
      shown.style.zoom = size;
      const fits = Math.min(shown.clientHeight / shown.scrollHeight, shown.clientWidth / shown.scrollWidth);
      if (fits >= 0.99) break;
      size *= fits;
    }
  });
}

function tell() {
  if (!notes || notes.closed) return;
  const at = here();
  const text = slides[at].querySelector(".notes");
  const next = slides[at + 1] && slides[at + 1].querySelector("h1, h2");
  notes.document.querySelector("main").innerHTML = text ? text.innerHTML : "<p>(nothing to say: look)</p>";
  notes.document.querySelector("footer").textContent = `${at + 1} of ${slides.length}${next ? ` · next: ${next.textContent}` : ""}`;
}

function speak() {
  notes = open("", "course-notes", "width=760,height=640");
  const head = [...document.head.querySelectorAll("style, link[rel=stylesheet]")].map((one) => one.outerHTML).join("");
  notes.document.write(`<base href="${location.href}"><title>Notes</title>${head}<style>body { padding: 1.5rem; font-size: 1.3rem } footer { opacity: 0.7 }</style><main class="bd-article"></main><footer></footer>`);
  notes.document.close();
  notes.addEventListener("keydown", press);
  tell();
}

function press(event) {
  if (event.key === "s" || event.key === "S") return void speak();
  const by = forward[event.key];
  if (!by || event.target.closest?.("input:not([type=range]), select")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const at = here();
  const player = slider(slides[at]);
  const to = player && Number(player.value) + by;
  if (player && to >= Number(player.min) && to <= Number(player.max)) {
    frame(player, to);
    share(slides[at]);
  } else {
    slides[Math.min(Math.max(at + by, 0), slides.length - 1)].scrollIntoView({ behavior: "instant" });
  }
  tell();
}

addEventListener("keydown", press, { capture: true });
slides.forEach((slide) => {
  const player = slider(slide);
  if (player) frame(player, player.min); // a deck begins at the first frame
  share(slide);
  slide.addEventListener("frame", () => setTimeout(() => share(slide)), { capture: true });
});
addEventListener("resize", fit);
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  fit();
});
