// One request: sends a form and receives lines; all but the last are progress.
export async function ask(kind, body, signal, progress) {
  let started = false;
  const waiting = setInterval(async () => {
    if (started) return;
    const status = await fetch("api/status", { signal }).then((r) => r.json()).catch(() => null);
    if (!started && status?.waiting) progress(`busy, waiting for a worker (${status.waiting} in the queue)`);
  }, 1500);
  try {
    const answer = await fetch("api/" + kind, { method: "POST", body, signal, headers: { Accept: "application/x-ndjson" } })
      .catch((problem) => { throw problem.name === "AbortError" ? problem : new Error("No answer: is annealed serve still running?"); });
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `The server returned status ${answer.status}.`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parts = [];
    let last = null;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const pieces = value.split("\n");
      parts.push(pieces[0]);
      for (const piece of pieces.slice(1)) {
        last = JSON.parse(parts.join(""));
        parts.length = 0;
        parts.push(piece);
        started = true;
        if (last.note) progress(last);
        else if (last.step) progress(last.step, last.done, last.of);
      }
    }
    if (!last || last.step || last.note) throw new Error("The connection was lost: is annealed serve still running?");
    if (last.error) throw new Error(last.error);
    return last;
  } finally {
    started = true;
    clearInterval(waiting);
  }
}

// A canvas that fills its container, sharp on every screen; returns a context in image units.
export function fit(canvas, width, height) {
  const room = canvas.parentElement.clientWidth || 600;
  const scale = Math.min(room / width, Math.max(260, window.innerHeight * 0.74) / height, 3);
  const shown = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = shown.map((side) => Math.round(side * ratio));
  [canvas.style.width, canvas.style.height] = shown.map((side) => side + "px");
  const context = canvas.getContext("2d");
  context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  return { context, scale };
}

export const seconds = (s) => (s < 9.95 ? s.toFixed(s < 0.995 ? 2 : 1) : String(Math.round(s))) + "\u00a0s";

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export async function pictureOf(url) {
  const picture = new Image();
  picture.src = url;
  await picture.decode();
  return picture;
}
