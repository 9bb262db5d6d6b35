// Pages that were read can be read again without a network: service_worker.js keeps them. The first page of a site came
// before it was there, and says what it is made of.
(function () {
  if (!navigator.serviceWorker || !location.protocol.startsWith("http")) return;
  const root = new URL(document.documentElement.dataset.content_root, location.href);

  const mine = () => [location.origin + location.pathname, ...performance.getEntriesByType("resource").map(({ name }) => name)]
    .filter((address) => address.startsWith(root.href));

  // What Python was loaded from, where no worker saw it.
  async function python() {
    const folder = new URL("_static/python/", root);
    const { core, archives } = await (await fetch(new URL("site.json", folder))).json();
    const files = [...Object.values(core), ...Object.values(archives)].map(({ path }) => path);
    return ["site.json", "worker.js", "page_python.js", "core/pyodide.mjs", "core/pyodide-lock.json", ...files].map((path) => new URL(path, folder).href);
  }

  async function tell(what) {
    const { active } = await navigator.serviceWorker.ready;
    active.postMessage({ keep: await what() });
  }

  window.addEventListener("load", async () => {
    const first = !navigator.serviceWorker.controller;
    try {
      await navigator.serviceWorker.register(new URL("service_worker.js", root));
    } catch {
      return; // a browser that keeps nothing
    }
    if (!first) return;
    tell(mine);
    document.addEventListener("course-python", function loaded() {
      if (course.python.state !== "ready") return;
      document.removeEventListener("course-python", loaded);
      tell(python);
    });
  });
})();
