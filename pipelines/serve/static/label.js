// The Label tab: proposes, moves and saves points of objects; next image; training in the background.
import { element, fit, pictureOf } from "./ask.js";

const PALETTE = ["#56b4e9", "#d53c32", "#f0e442", "#50dcaa", "#cc79c8", "#0072b2", "#ff8c82", "#bea000", "#009e73", "#ffffff"];
const STATES = ["not in the image", "hidden", "visible"];  // by COCO visibility
const NEAR = 14;  // pixels of the screen
const MAX_SCALE = 40;  // pixels of the screen for one of the image
const WATCH = 1500;  // milliseconds

// Distinct colours: the palette or, for more points, hues in three lightnesses.
const coloursOf = (n) => (n <= PALETTE.length ? PALETTE : Array.from({ length: n }, (_, k) => `hsl(${(360 * k) / n} 85% ${[62, 38, 80][k % 3]}%)`));

export async function connectLabel(panel) {
  const part = (selector) => panel.querySelector(selector);
  const canvas = part(".picture"), tip = part(".tip");
  const view = { turn: 0, zoom: 1, x: 0, y: 0 };  // quarter turns, and the offset in pixels of the turned image
  const visited = [], skipped = new Set();
  let folder = null, number = 0, now = null, picture = null, chosen = 0, held = null, asked = 0, past = [];
  let colours = [], base = 1, scale = 1, toImage = null, over = false, space = false;

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
    [now, picture, chosen, held, past] = [got, shown, 0, null, []];
    now.objects.forEach(complete);
    tell(now.labelled ? "labelled" : now.objects.length ? "proposed" : "nothing proposed");
    whole();
  });

  function tell(state) {
    const done = folder.pictures.filter((one) => one.labelled).length;
    part(".facts").textContent = `${folder.pictures[number].name} (${number + 1} of ${folder.pictures.length}): ${state}. ${done} labelled.`;
  }

  // The image without labels about which the model is least certain, else the next one.
  function following() {
    const order = folder.pictures.map((_, i) => (number + 1 + i) % folder.pictures.length);
    const certainty = (i) => folder.pictures[i].certainty ?? 2;  // unknown: after all others
    const open = order.filter((i) => !folder.pictures[i].labelled && !skipped.has(i));
    return open.length ? open.reduce((best, i) => (certainty(i) < certainty(best) ? i : best)) : order[0];
  }

  function proceed() {
    visited.push(number);
    return show(following());
  }

  const middleOf = (points) => [0, 1].map((k) => points.reduce((sum, point) => sum + point[k], 0) / (points.length || 1));
  const inside = ([x, y, seen]) => [Math.min(Math.max(x, 0), now.width - 1), Math.min(Math.max(y, 0), now.height - 1), seen];

  // Adds the points that are not in the image, where the mean shape expects them.
  function complete({ keypoints }) {
    const known = folder.keypoints.filter((name) => keypoints[name]);
    const from = middleOf(known.map((name) => folder.mean[name])), to = middleOf(known.map((name) => keypoints[name]));
    const offset = (name) => [0, 1].map((k) => folder.mean[name][k] - from[k]);
    let [re, im, norm] = [0, 0, 1e-9];  // of the similarity transform, by least squares
    for (const name of known) {
      const [a, b] = offset(name), [x, y] = [keypoints[name][0] - to[0], keypoints[name][1] - to[1]];
      [re, im, norm] = [re + a * x + b * y, im + a * y - b * x, norm + a * a + b * b];
    }
    for (const name of folder.keypoints) {
      const [a, b] = offset(name);
      keypoints[name] ??= inside([to[0] + (re * a - im * b) / norm, to[1] + (re * b + im * a) / norm, 0]);
    }
  }

  function frame(object) {
    const all = Object.values(object.keypoints), present = all.filter((point) => point[2]);
    const [x, y] = [0, 1].map((k) => (present.length ? present : all).map((point) => point[k]));
    const margin = 10 / scale;
    return [Math.min(...x) - margin, Math.min(...y) - margin, Math.max(...x) + margin, Math.max(...y) + margin];
  }

  const turnedSize = () => (view.turn % 2 ? [now.height, now.width] : [now.width, now.height]);

  function draw() {
    if (!now) return;
    const [width, height] = turnedSize();
    const fitted = fit(canvas, width, height);
    const context = fitted.context;
    base = fitted.scale;
    scale = base * view.zoom;
    view.x = Math.min(0, Math.max(view.x, width * (1 - view.zoom)));
    view.y = Math.min(0, Math.max(view.y, height * (1 - view.zoom)));
    context.translate(view.x, view.y);
    context.scale(view.zoom, view.zoom);
    context.translate(width / 2, height / 2);
    context.rotate((view.turn * Math.PI) / 2);
    context.translate(-now.width / 2, -now.height / 2);
    context.imageSmoothingEnabled = scale < 6;
    context.drawImage(picture, 0, 0, now.width, now.height);
    context.translate(0.5, 0.5);  // (0, 0) is the centre of the first pixel
    toImage = context.getTransform().inverse();
    now.objects.forEach((object, i) => drawObject(context, object, i === chosen));
    if (held?.corner) outline(context, held.start, held.corner);
    for (const [k, item] of [...part(".legend").children].entries()) {
      const seen = now.objects[chosen]?.keypoints[folder.keypoints[k]][2];
      item.disabled = seen === undefined;
      item.lastChild.textContent = item.disabled || seen > 1 ? "" : STATES[seen];
    }
    part(".undo").disabled = !past.length;
  }

  function outline(context, [x0, y0], [x1, y1]) {
    context.setLineDash([5 / scale, 4 / scale]);
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    context.setLineDash([]);
  }

  function drawObject(context, object, isChosen) {
    const points = object.keypoints, line = (...ends) => {
      context.beginPath();
      ends.forEach(([x, y], k) => (k % 2 ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.stroke();
    };
    context.strokeStyle = isChosen ? "#fff" : "rgb(255 255 255 / 55%)";
    context.lineWidth = 1.5 / scale;
    const [x0, y0, x1, y1] = frame(object);
    outline(context, [x0, y0], [x1, y1]);
    for (const [a, b] of folder.skeleton) if (points[a][2] && points[b][2]) line(points[a], points[b]);
    folder.keypoints.forEach((name, k) => {
      const [x, y, seen] = points[name], arm = 5 / scale;
      const cross = [[x - arm, y - arm], [x + arm, y + arm], [x - arm, y + arm], [x + arm, y - arm]];
      const disc = () => { context.beginPath(); context.arc(x, y, 5.5 / scale, 0, 7); };
      // Dark and coloured, visible on every image: a filled disc, a ring, or a cross
      context.strokeStyle = "rgb(15 15 15 / 90%)";
      context.lineWidth = 5 / scale;
      if (seen) { disc(); context.stroke(); } else line(...cross);
      context.strokeStyle = context.fillStyle = colours[k];
      context.lineWidth = 2.5 / scale;
      if (seen > 1) context.fill(); else if (seen) context.stroke(); else line(...cross);
    });
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    const { x, y } = toImage.transformPoint(new DOMPoint(((event.clientX - box.left) / box.width) * canvas.width, ((event.clientY - box.top) / box.height) * canvas.height));
    return [x, y];
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

  // Stores the objects before a change; successive changes of the same kind are undone together.
  function remember(kind = null) {
    if (kind && past.at(-1)?.kind === kind) return;
    past.push({ kind, chosen, objects: structuredClone(now.objects) });
  }

  function undo() {
    if (!now || !past.length) return;
    ({ chosen, objects: now.objects } = past.pop());
    held = null;
    draw();
  }

  function move(object, change) {
    for (const [name, point] of Object.entries(object.keypoints)) object.keypoints[name] = inside(change(point));
    delete object.bbox;
  }

  function nextState(object, name) {
    remember();
    const point = object.keypoints[name];
    point[2] = (point[2] + 2) % 3;
    draw();
  }

  function hover(event) {
    const pointed = !held?.pan && now && (held?.name ? held : under(place(event)));
    tip.hidden = !pointed?.name;
    if (tip.hidden) return;
    const seen = now.objects[pointed.object].keypoints[pointed.name][2];
    tip.textContent = pointed.name.replaceAll("_", " ") + (seen > 1 ? "" : ` (${STATES[seen]})`);
    const box = tip.parentElement.getBoundingClientRect(), x = event.clientX - box.left;
    tip.style.left = x + (x < box.width / 2 ? 16 : -16 - tip.offsetWidth) + "px";
    tip.style.top = event.clientY - box.top - 12 + "px";
  }

  canvas.addEventListener("mousedown", (event) => { if (event.button === 1) event.preventDefault(); });  // no scrolling
  canvas.addEventListener("pointerdown", (event) => {
    if (!now || event.button > 1) return;
    canvas.setPointerCapture(event.pointerId);
    const at = place(event);
    if (space || event.button === 1) held = { pan: [event.clientX, event.clientY] };
    else held = under(at) ?? { start: at };
    held.last = at;
    chosen = held.object ?? chosen;
    draw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!now) return;
    const [x, y] = place(event);
    if (held?.pan) {
      [view.x, view.y] = [view.x + (event.clientX - held.pan[0]) / base, view.y + (event.clientY - held.pan[1]) / base];
      held.pan = [event.clientX, event.clientY];
    } else if (held?.start) {
      held.corner = [x, y];
    } else if (held) {
      if (!held.moved) remember();
      held.moved = true;
      const object = now.objects[held.object];
      // a moved point is in the image
      if (held.name) object.keypoints[held.name] = inside([x, y, object.keypoints[held.name][2] || 2]);
      else move(object, ([a, b, seen]) => [a + x - held.last[0], b + y - held.last[1], seen]);
      held.last = [x, y];
    }
    if (held) draw();
    hover(event);
  });
  canvas.addEventListener("pointerup", () => {
    const { start, corner } = held ?? {};
    held = null;
    if (corner && Math.max(...[0, 1].map((k) => Math.abs(corner[k] - start[k]))) > NEAR / scale) addInBox(start, corner);
    else if (now) draw();
  });
  canvas.addEventListener("pointercancel", () => { held = null; draw(); });
  canvas.addEventListener("pointerenter", () => { over = true; });
  canvas.addEventListener("pointerleave", () => { over = false; tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => {
    const pointed = now && under(place(event));
    if (pointed?.name) nextState(now.objects[pointed.object], pointed.name);
    hover(event);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!now) return;
    event.preventDefault();
    const amount = (event.deltaY || event.deltaX) * (event.deltaMode ? 33 : 1) * (event.ctrlKey ? 5 : 1);  // pinches are small
    const object = event.shiftKey && now.objects[chosen];
    if (object) {
      remember("size " + chosen);
      const [x0, y0, x1, y1] = frame(object), [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2], factor = 1.0005 ** -amount;
      move(object, ([a, b, seen]) => [x + factor * (a - x), y + factor * (b - y), seen]);
    } else if (!event.shiftKey) {
      const zoom = Math.min(Math.max(view.zoom * 1.002 ** -amount, 1), Math.max(1, MAX_SCALE / base));
      const box = canvas.getBoundingClientRect(), at = [(event.clientX - box.left) / base, (event.clientY - box.top) / base];
      [view.x, view.y] = [at[0] - ((at[0] - view.x) * zoom) / view.zoom, at[1] - ((at[1] - view.y) * zoom) / view.zoom];
      view.zoom = zoom;
    }
    draw();
  }, { passive: false });

  const save = attempt(async () => {
    if (!now) return;
    const review = now.labelled;
    const body = JSON.stringify({ version: now.version, objects: now.objects.map(({ keypoints, bbox }) => ({ keypoints, bbox })) });
    await call("/" + number, { method: "PUT", body });
    folder = await call();  // with the mean shape and the certainty of the other images
    if (!review) return proceed();
    visited.push(number);
    return show(number + 1);
  });

  // Adds the mean shape, upright in the view: its position `origin` at a position of the image, its axes scaled.
  function add([x, y], scales, origin = [0, 0]) {
    remember();
    const points = folder.keypoints.map((name) => {
      let [a, b] = [0, 1].map((k) => scales[k] * (folder.mean[name][k] - origin[k]));
      for (let k = 0; k < view.turn; k++) [a, b] = [b, -a];
      return [name, inside([x + a, y + b, 2])];
    });
    chosen = now.objects.push({ keypoints: Object.fromEntries(points) }) - 1;
    draw();
  }

  function addInBox(start, corner) {
    const size = [0, 1].map((k) => Math.abs(corner[view.turn % 2 ? 1 - k : k] - start[view.turn % 2 ? 1 - k : k]));
    const ends = [0, 1].map((k) => Object.values(folder.mean).map((point) => point[k])).map((values) => [Math.min(...values), Math.max(...values)]);
    add(middleOf([start, corner]), ends.map(([low, high], k) => size[k] / Math.max(high - low, 1e-6)), ends.map(([low, high]) => (low + high) / 2));
  }

  // At the mean position of all labels, or in the middle of the view.
  function addMean() {
    if (!now) return;
    const [x, y, size] = folder.place ?? [];
    const usual = x < now.width && y < now.height && !now.objects.length && view.zoom === 1;
    const middle = toImage.transformPoint(new DOMPoint(canvas.width / 2, canvas.height / 2));
    const side = size ?? (0.4 * Math.min(now.width, now.height)) / view.zoom;
    add(usual ? [x, y] : [middle.x, middle.y], [side, side]);
  }

  function remove() {
    if (!now?.objects.length) return;
    remember();
    now.objects.splice(chosen, 1);
    chosen = Math.max(0, now.objects.length - 1);
    draw();
  }

  function whole() {
    [view.zoom, view.x, view.y] = [1, 0, 0];
    draw();
  }

  function turn() {
    view.turn = (view.turn + 1) % 4;
    if (now) whole();
  }

  function training({ state, line, report }) {
    part(".train").disabled = state === "running";
    part(".training").textContent = { none: "", running: "Training: ", done: "Done: the new model makes the proposals. ", failed: "Failed: " }[state] + line;
    part(".training-report").hidden = !report || state === "running" || state === "failed";
    if (state === "running") setTimeout(attempt(async () => { folder = await call(); training(folder.training); }), WATCH);
  }

  part(".next").addEventListener("click", save);
  part(".back").addEventListener("click", () => show(visited.pop() ?? number - 1));
  part(".skip-picture").addEventListener("click", () => { skipped.add(number); return proceed(); });
  part(".undo").addEventListener("click", undo);
  part(".add").addEventListener("click", addMean);
  part(".remove").addEventListener("click", remove);
  part(".turn").addEventListener("click", turn);
  part(".train").addEventListener("click", attempt(async () => training(await call("/train", { method: "POST" }))));
  window.addEventListener("keydown", (event) => {
    if (panel.hidden) return;
    const command = event.ctrlKey || event.metaKey;
    const action = command ? { z: undo }[event.key] : event.key === " " ? over && (() => { space = true; }) : document.activeElement === canvas && { Enter: save, Delete: remove, r: turn, 0: whole }[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  window.addEventListener("keyup", (event) => {
    if (event.key !== " " || !space) return;
    event.preventDefault();  // no click on a focused button
    space = false;
  });
  window.addEventListener("blur", () => { space = false; });
  window.addEventListener("resize", () => !panel.hidden && draw());

  await attempt(async () => {
    folder = await call();
    colours = coloursOf(folder.keypoints.length);
    part(".legend").replaceChildren(...folder.keypoints.map((name, k) => {
      const dot = element("span", { className: "dot" });
      dot.style.setProperty("--c", colours[k]);
      const item = element("button", { type: "button", title: "Visible, hidden, or not in the image" }, dot, name.replaceAll("_", " "), element("span", { className: "count" }));
      item.addEventListener("click", () => nextState(now.objects[chosen], name));
      return item;
    }));
    training(folder.training);
    const first = folder.pictures.findIndex((one) => !one.labelled);
    await show(Math.max(first, 0));
  })();
}
