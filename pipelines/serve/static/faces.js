// Keypoints on the photograph, and the windows and features of the selected one.
import { element, fit, pictureOf, seconds } from "./ask.js";

// As in `annealed faces detect --overlay`: most colour-blind readers can distinguish them.
const COLOURS = {
  left_eye: "#56b4e9", right_eye: "#0072b2", left_nose: "#f0e442", right_nose: "#bea000", left_mouth: "#ff8c82",
  right_mouth: "#d53c32", left_ear: "#50dcaa", right_ear: "#009e73", chin: "#cc79c8",
};
const SHAPES = { "2h": "side by side", "2v": "above, below", "3h": "a stripe down", "3v": "a stripe across", 4: "checkerboard", centre: "a spot", hog: "edges" };
const words = (name) => name.replace("_", " ");
const degrees = (radians) => `${Math.round(radians * 180 / Math.PI)}°`.replace("-", "−");
let features = null;
let now = null;

export async function showFaces(panel, answer, file, waited, save) {
  const picture = answer.picture ? await pictureOf(answer.picture) : await createImageBitmap(file);
  const sure = answer.detections.length > 0 && answer.detections.every((d) => d.probability != null);
  const strength = (d) => (sure ? d.probability : d.score);
  const all = answer.detections.map(strength);
  now = { panel, answer, picture, sure, strength, chosen: null, waited, part: (selector) => panel.querySelector(selector) };
  const slider = now.part("#confidence");
  const [low, high] = sure ? [Math.min(0.05, ...all), 1] : [Math.min(0, ...all), Math.max(1, ...all)];
  Object.assign(slider, { min: low, max: high, step: (high - low) / 200 });
  slider.value = sure ? 0.5 : low;
  slider.oninput = draw;
  now.part(".slider label").textContent = sure ? "Minimum probability" : "Minimum score";
  now.part(".picture").onclick = choose;
  now.part(".windows").hidden = true;
  now.part(".save").onclick = () => save({ min_probability: slider.value, picture: "false" });
  draw();
}

function shown() {
  const least = Number(now.part("#confidence").value);
  return now.answer.detections.filter((d) => now.strength(d) >= least);
}

function draw() {
  const { answer, picture, part, sure } = now;
  const least = Number(part("#confidence").value);
  part(".slider output").textContent = sure ? Math.round(100 * least) + " %" : least.toFixed(2);
  const { context, scale } = fit(part(".picture"), answer.width, answer.height);
  context.drawImage(picture, 0, 0, answer.width, answer.height);
  const faces = (answer.faces ?? []).filter((face) => face.probability >= least);
  for (const face of faces) drawFace(context, face, scale);
  const found = shown();
  for (const d of [...found].reverse()) drawKeypoint(context, d, scale);
  const counts = {};
  for (const d of found) counts[d.keypoint] = (counts[d.keypoint] ?? 0) + 1;
  const people = answer.faces ? `${faces.length} face${faces.length === 1 ? "" : "s"}, ` : "";
  part(".facts").textContent = `${people}${found.length} keypoint${found.length === 1 ? "" : "s"} in ${answer.width} × ${answer.height} pixels. ` +
    `Searched in ${seconds(answer.seconds)}` + (now.waited > 2 * answer.seconds + 1 ? `, ${seconds(now.waited)} in total.` : ".");
  part(".poses").textContent = faces.slice(0, 4).map((face, i) => `Face ${i + 1}: ${Math.round(100 * face.probability)}\u00a0%` +
    Object.entries(face.pose).map(([name, angle]) => `, ${name}\u00a0${degrees(angle)}`).join("") + ".").join(" ");
  legend(counts);
  if (now.chosen && !found.includes(now.chosen)) show(null);
}

function drawFace(context, face, scale) {
  const [x0, y0, x1, y1] = face.box;
  context.lineWidth = 2 / scale;
  for (const [colour, dashes] of [["rgb(0 0 0 / 55%)", []], ["#fff", [7 / scale, 5 / scale]]]) {
    context.strokeStyle = colour;
    context.setLineDash(dashes);
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }
  context.setLineDash([]);
  const label = `${Math.round(100 * face.probability)} %`;
  context.font = `600 ${13 / scale}px system-ui, sans-serif`;
  const width = context.measureText(label).width + 10 / scale;
  context.fillStyle = "rgb(0 0 0 / 65%)";
  context.fillRect(x0, Math.max(0, y0 - 20 / scale), width, 19 / scale);
  context.fillStyle = "#fff";
  context.fillText(label, x0 + 5 / scale, Math.max(0, y0 - 20 / scale) + 14 / scale);
}

function drawKeypoint(context, d, scale) {
  const colour = COLOURS[d.keypoint] ?? "#fff";
  const disc = (radius, fill) => {
    context.beginPath();
    context.arc(d.x + 0.5, d.y + 0.5, radius, 0, 7);
    if (fill) { context.fillStyle = fill; context.fill(); }
  };
  if (d === now.chosen) {
    context.strokeStyle = "#fff";
    context.lineWidth = 2.5 / scale;
    context.strokeRect(d.x + 0.5 - d.size / 2, d.y + 0.5 - d.size / 2, d.size, d.size);
  }
  const radius = Math.min(Math.max(0.1 * d.size, 3.5 / scale), 8 / scale);
  disc(radius + 1.5 / scale, "rgb(15 15 15 / 90%)");
  disc(radius, colour);
}

function legend(counts) {
  const place = now.part(".legend");
  const had = place.contains(document.activeElement) ? document.activeElement.dataset.keypoint : null;
  place.replaceChildren(...Object.keys(COLOURS).filter((name) => counts[name]).map((name) => {
    const dot = element("span", { className: "dot" });
    dot.style.setProperty("--c", COLOURS[name]);
    const button = element("button", { type: "button" }, dot, words(name), element("span", { className: "count" }, String(counts[name])));
    button.dataset.keypoint = name;
    button.setAttribute("aria-pressed", String(now.chosen?.keypoint === name));
    button.onclick = () => {
      const mine = shown().filter((d) => d.keypoint === name);
      show(mine[(mine.indexOf(now.chosen) + 1) % mine.length]);
    };
    return button;
  }));
  if (had) place.querySelector(`[data-keypoint="${had}"]`)?.focus();
}

function choose(event) {
  const canvas = now.part(".picture");
  const scale = canvas.clientWidth / now.answer.width;
  const distance = (d) => Math.hypot(d.x - event.offsetX / scale, d.y - event.offsetY / scale);
  const nearest = shown().sort((a, b) => distance(a) - distance(b))[0];
  if (nearest && distance(nearest) * scale < 30) show(nearest);
}

async function show(detection) {
  now.chosen = detection;
  draw();
  const place = now.part(".windows");
  place.hidden = !detection;
  if (!detection) return;
  features ??= await fetch("api/features").then((r) => (r.ok ? r.json() : null));
  if (!features || now.chosen !== detection) return;
  const name = detection.keypoint;
  const strongest = features.features[name] ?? [];
  place.querySelector("h3").textContent = strongest.length ? `Detector of the ${words(name)}` : `The ${words(name)}`;
  place.querySelector(".alone").hidden = strongest.length > 0;
  place.querySelector(".how").hidden = strongest.length === 0;
  const tiles = [patch(detection, null, "the window"), ...strongest.map((f) => patch(detection, f, short(f.name), f.name))];
  place.querySelector(".patches").replaceChildren(...tiles);
}

// Short form of a name such as "red 3h at (0, 16), cells 2x8"; the full name is the title.
function short(name) {
  const [channel, kind] = name.split(" ");
  return `${channel}, ${SHAPES[kind] ?? kind}`;
}

// The enlarged window, 24 pixels of its pyramid level, with one feature over it.
function patch(d, feature, caption, title = "") {
  const side = 192;
  const canvas = element("canvas", { width: side, height: side });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", caption);
  const context = canvas.getContext("2d");
  const unit = side / features.window;
  const small = element("canvas", { width: features.window, height: features.window });
  const lens = small.getContext("2d");
  lens.imageSmoothingQuality = "high";
  const perPixel = now.picture.width / now.answer.width;
  lens.drawImage(now.picture, (d.x + 0.5 - d.size / 2) * perPixel, (d.y + 0.5 - d.size / 2) * perPixel, d.size * perPixel, d.size * perPixel,
    0, 0, features.window, features.window);
  context.imageSmoothingEnabled = false;
  if (feature) context.filter = "grayscale(1) brightness(0.9)";
  context.drawImage(small, 0, 0, side, side);
  context.filter = "none";
  for (const [x, y, width, height, weight] of feature?.cells ?? []) {
    const place = [x * unit, y * unit, width * unit, height * unit];
    if (feature.angle != null) {
      edge(context, place, feature.angle);
      continue;
    }
    context.fillStyle = weight > 0 ? "rgb(64 224 160 / 48%)" : "rgb(235 130 20 / 52%)";
    context.fillRect(...place);
    context.strokeStyle = "rgb(0 0 0 / 50%)";
    context.strokeRect(...place);
  }
  return element("figure", { title }, canvas, element("figcaption", {}, caption));
}

function edge(context, [x, y, width, height], angle) {
  context.strokeStyle = "#8fd0ff";
  context.lineWidth = 3;
  context.strokeRect(x, y, width, height);
  const along = angle + Math.PI / 2;  // an edge is perpendicular to its gradient
  const [dx, dy] = [0.42 * width * Math.cos(along), 0.42 * height * Math.sin(along)];
  context.beginPath();
  context.moveTo(x + width / 2 - dx, y + height / 2 - dy);
  context.lineTo(x + width / 2 + dx, y + height / 2 + dy);
  context.lineWidth = 7;
  context.stroke();
}

window.addEventListener("resize", () => now && !now.panel.hidden && draw());
