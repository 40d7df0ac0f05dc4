// The left side of a panel: a dropped, chosen or sample file, options, progress, errors.
import { ask, element } from "./ask.js";

export function connect(panel, { show, fields, prepare = () => {} }) {
  const form = panel.querySelector("form.input");
  const own = [...form.children];
  form.append(document.getElementById("input").content.cloneNode(true));
  const part = (selector) => form.querySelector(selector);
  part(".options").append(...own);
  const [drop, chooser, working, error, note, submit] =
    [".drop", "input[type=file]", ".working", ".error", ".note", ".primary"].map(part);
  const { kind, accept, sample, what } = form.dataset;
  const manual = "manual" in form.dataset;
  part(".what").textContent = `Drop ${what}`;
  chooser.accept = accept;
  chooser.setAttribute("aria-label", `Choose ${what}`);
  chooser.tabIndex = -1;
  let file = null;
  let running = null;

  part(".choose").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => chooser.files[0] && take(chooser.files[0]));
  part(".cancel").addEventListener("click", () => running?.abort());
  part(".sample").addEventListener("click", async () => {
    clear();
    try {
      const answer = await fetch("samples/" + sample);
      if (!answer.ok) throw new Error((await answer.json()).error);
      await take(new File([await answer.blob()], sample, { type: answer.headers.get("content-type") }), true);
    } catch (problem) {
      fail(problem);
    }
  });
  for (const type of ["dragenter", "dragover"]) panel.addEventListener(type, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  for (const type of ["dragleave", "drop"]) panel.addEventListener(type, (event) => {
    event.preventDefault();
    drop.classList.remove("over");
  });
  panel.addEventListener("drop", (event) => event.dataTransfer.files[0] && take(event.dataTransfer.files[0]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (file) send();
  });
  if (!manual) form.addEventListener("change", (event) => file && event.target !== chooser && send());

  function clear() {
    error.hidden = note.hidden = true;
    note.textContent = "";
  }

  function fail(problem) {
    error.textContent = problem.message;
    error.hidden = false;
  }

  async function take(chosen, isSample = false) {
    file = chosen;
    chooser.value = "";
    part(".chosen").textContent = `${file.name} (${size(file.size)})`;
    part(".chosen").hidden = false;
    clear();
    await prepare(form, file, isSample);
    submit.hidden = !manual;
    if (!manual || isSample) await send();
  }

  async function request(extra, signal) {
    const body = new FormData(form);
    body.delete("tiny");
    for (const [name, value] of Object.entries({ ...(await fields(form, file)), ...extra })) body.set(name, value);
    body.set("file", file, file.name);
    return ask(kind, body, signal, progress);
  }

  const send = () => busy(async (signal, isCurrent) => {
    const start = performance.now();
    const answer = await request({}, signal);
    if (!isCurrent()) return;
    const result = panel.querySelector(".result");
    result.hidden = false;
    panel.classList.add("has-result");
    await show(panel, answer, file, (performance.now() - start) / 1000, save);
    if (result.getBoundingClientRect().top > window.innerHeight - 200) result.scrollIntoView({ block: "start" });
  });

  // The output files of the command, in one archive.
  const save = (extra) => busy(async (signal, isCurrent) => {
    const { files } = await request({ ...extra, files: "true" }, signal);
    if (!isCurrent()) return;
    const bytes = Uint8Array.from(atob(files.split(",", 2)[1]), (c) => c.charCodeAt(0));
    const href = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
    element("a", { download: `${file.name.replace(/\.[^.]*$/, "")}_${kind}.zip`, href }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
  });

  // One request at a time: a new one cancels the previous one.
  async function busy(work) {
    running?.abort();
    const mine = (running = new AbortController());
    clear();
    progress("reading the file");
    working.hidden = false;
    submit.disabled = true;
    try {
      await work(mine.signal, () => mine === running);
    } catch (problem) {
      if (mine === running && problem.name !== "AbortError") fail(problem);
      else if (mine === running) say("Cancelled.");
    } finally {
      if (mine === running) {
        running = null;
        working.hidden = true;
        submit.disabled = false;
      }
    }
  }

  function say(text) {
    note.textContent = [note.textContent, text].filter(Boolean).join(" ");
    note.hidden = false;
  }

  function progress(message, done = null, of = null) {
    if (typeof message === "object") return say(message.note);
    part(".step").textContent = of ? `${message}: ${Math.min(done, of)} of ${of}` : message + " …";
    const bar = part("progress");
    if (of) [bar.max, bar.value] = [of, Math.min(done, of)];
    else bar.removeAttribute("value");
  }
}

const size = (n) => (n < 1e6 ? `${Math.max(1, Math.round(n / 1e3))} kB` : `${(n / 1e6).toFixed(1)} MB`);
