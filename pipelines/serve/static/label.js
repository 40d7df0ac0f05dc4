// The Label tab: proposes, moves and saves points of objects; next image; training in the background.
import { element, fit, pictureOf } from "./ask.js";

const COLOURS = ["#56b4e9", "#d53c32", "#f0e442", "#50dcaa", "#cc79c8", "#0072b2", "#ff8c82", "#bea000", "#009e73", "#ffffff"];
const NEAR = 14;  // pixels of the screen
const WATCH = 1500;  // milliseconds

export async function connectLabel(panel) {
  const part = (selector) => panel.querySelector(selector);
  const canvas = part(".picture");
  let folder = null, number = 0, now = null, picture = null, chosen = 0, held = null, scale = 1, asked = 0;

  async function call(path = "", options = {}) {
    const answer = await fetch("api/label" + path, options)
      .catch(() => { throw new Error("No answer: is annealed serve still running?"); });
    const record = await answer.json();
    if (!answer.ok) throw new Error(record.error);
    return record;
  }

  const attempt = (work) => async (...given) => {
    part(".error").hidden = true;
    try {
      await work(...given);
    } catch (problem) {
      part(".error").textContent = problem.message;
      part(".error").hidden = false;
    }
  };

  const show = attempt(async (wanted) => {
    number = (wanted + folder.pictures.length) % folder.pictures.length;
    const mine = ++asked;
    now = null;
    tell("loading …");
    const got = await call("/" + number);
    const shown = await pictureOf(got.picture);
    if (mine !== asked) return;  // another image was requested meanwhile
    [now, picture, chosen, held] = [got, shown, 0, null];
    tell(now.labelled ? "labelled" : now.objects.length ? "proposed" : "nothing proposed");
    draw();
  });

  function tell(state) {
    const done = folder.pictures.filter((one) => one.labelled).length;
    part(".facts").textContent = `${folder.pictures[number].name} (${number + 1} of ${folder.pictures.length}): ${state}. ${done} labelled.`;
  }

  function frame(object) {
    const points = Object.values(object.keypoints);
    const [x, y] = [0, 1].map((k) => points.map((point) => point[k]));
    const margin = 10 / scale;
    return [Math.min(...x) - margin, Math.min(...y) - margin, Math.max(...x) + margin, Math.max(...y) + margin];
  }

  function draw() {
    if (!now) return;
    const fitted = fit(canvas, now.width, now.height);
    const context = fitted.context;
    scale = fitted.scale;
    context.drawImage(picture, 0, 0, now.width, now.height);
    context.translate(0.5, 0.5);  // (0, 0) is the centre of the first pixel
    now.objects.forEach((object, i) => {
      const points = object.keypoints;
      context.strokeStyle = i === chosen ? "#fff" : "rgb(255 255 255 / 55%)";
      context.lineWidth = 1.5 / scale;
      context.setLineDash([5 / scale, 4 / scale]);
      const [x0, y0, x1, y1] = frame(object);
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
      context.setLineDash([]);
      for (const [a, b] of folder.skeleton) {
        if (!points[a] || !points[b]) continue;
        context.beginPath();
        context.moveTo(...points[a].slice(0, 2));
        context.lineTo(...points[b].slice(0, 2));
        context.stroke();
      }
      folder.keypoints.forEach((name, k) => {
        if (!points[name]) return;
        const [x, y, seen] = points[name];
        context.beginPath();
        context.arc(x, y, 5.5 / scale, 0, 7);
        context.lineWidth = 2.5 / scale;
        context.strokeStyle = seen > 1 ? "rgb(15 15 15 / 90%)" : COLOURS[k % COLOURS.length];
        if (seen > 1) { context.fillStyle = COLOURS[k % COLOURS.length]; context.fill(); }
        context.stroke();
      });
    });
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * now.width - 0.5, (event.clientY - box.top) / box.height * now.height - 0.5];
  }

  // The nearest point, else the object whose frame contains the position.
  function under([x, y]) {
    let best = null, least = NEAR / scale;
    now.objects.forEach((object, i) => {
      for (const [name, [a, b]] of Object.entries(object.keypoints)) {
        const distance = Math.hypot(a - x, b - y);
        if (distance < least) [best, least] = [{ object: i, name }, distance];
      }
    });
    if (best) return best;
    const i = now.objects.findIndex((object) => {
      const [x0, y0, x1, y1] = frame(object);
      return x >= x0 && x <= x1 && y >= y0 && y <= y1;
    });
    return i < 0 ? null : { object: i, name: null };
  }

  const inside = ([x, y, seen]) => [Math.min(Math.max(x, 0), now.width - 1), Math.min(Math.max(y, 0), now.height - 1), seen];

  function move(object, change) {
    for (const [name, point] of Object.entries(object.keypoints)) object.keypoints[name] = inside(change(point));
    delete object.bbox;
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (!now) return;
    const at = place(event);
    held = under(at);
    if (!held) return;
    chosen = held.object;
    held.last = at;
    canvas.setPointerCapture(event.pointerId);
    draw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!now || !held) return;
    const [x, y] = place(event);
    const object = now.objects[held.object];
    if (held.name) object.keypoints[held.name] = inside([x, y, object.keypoints[held.name][2]]);
    else move(object, ([a, b, seen]) => [a + x - held.last[0], b + y - held.last[1], seen]);
    held.last = [x, y];
    draw();
  });
  for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, () => { held = null; });
  canvas.addEventListener("dblclick", (event) => {
    const found = now && under(place(event));
    if (!found?.name) return;
    const point = now.objects[found.object].keypoints[found.name];
    point[2] = point[2] > 1 ? 1 : 2;
    draw();
  });
  canvas.addEventListener("wheel", (event) => {
    const object = now?.objects[chosen];
    if (!object) return;
    event.preventDefault();
    const factor = event.deltaY < 0 ? 1.05 : 1 / 1.05;
    const [x0, y0, x1, y1] = frame(object);
    const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2];
    move(object, ([a, b, seen]) => [x + factor * (a - x), y + factor * (b - y), seen]);
    draw();
  }, { passive: false });

  const save = attempt(async () => {
    if (!now) return;
    const body = JSON.stringify({ version: now.version, objects: now.objects.map(({ keypoints, bbox }) => ({ keypoints, bbox })) });
    await call("/" + number, { method: "PUT", body });
    folder.pictures[number].labelled = true;
    await show(number + 1);
  });

  function add() {
    if (!now) return;
    const size = 0.4 * Math.min(now.width, now.height);
    const points = Object.entries(folder.mean).map(([name, [x, y]]) => [name, inside([now.width / 2 + size * x, now.height / 2 + size * y, 2])]);
    chosen = now.objects.push({ keypoints: Object.fromEntries(points) }) - 1;
    draw();
  }

  function remove() {
    if (!now) return;
    now.objects.splice(chosen, 1);
    chosen = Math.max(0, now.objects.length - 1);
    draw();
  }

  function training({ state, line }) {
    part(".train").disabled = state === "running";
    part(".training").textContent = { none: "", running: "Training: ", done: "Done: the new model makes the proposals. ", failed: "Failed: " }[state] + line;
    if (state === "running") setTimeout(attempt(async () => training((await call()).training)), WATCH);
  }

  part(".next").addEventListener("click", save);
  part(".back").addEventListener("click", () => show(number - 1));
  part(".skip-picture").addEventListener("click", () => show(number + 1));
  part(".add").addEventListener("click", add);
  part(".remove").addEventListener("click", remove);
  part(".train").addEventListener("click", attempt(async () => training(await call("/train", { method: "POST" }))));
  canvas.addEventListener("keydown", (event) => {
    const action = { Enter: save, Delete: remove }[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  window.addEventListener("resize", () => !panel.hidden && draw());

  await attempt(async () => {
    folder = await call();
    part(".legend").replaceChildren(...folder.keypoints.map((name, k) => {
      const dot = element("span", { className: "dot" });
      dot.style.setProperty("--c", COLOURS[k % COLOURS.length]);
      return element("span", { className: "item" }, dot, name.replaceAll("_", " "));
    }));
    training(folder.training);
    const first = folder.pictures.findIndex((one) => !one.labelled);
    await show(Math.max(first, 0));
  })();
}
