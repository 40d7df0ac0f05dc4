// Coloured points over the frames, and the candidates with their scores.
import { element, fit, pictureOf } from "./ask.js";

const COLOURS = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#ffffff"];
const TAIL = 10;  // frames
const FIRST = 8;  // candidates listed initially
let now = null;

export async function showMotion(panel, answer, file, waited, save) {
  stop();
  const { shown } = answer;
  const pictures = shown.pictures ? await Promise.all(shown.pictures.map(pictureOf)) : null;
  now = { panel, answer, shown, pictures, t: 0, part: (selector) => panel.querySelector(selector) };
  const slider = now.part(".frame");
  Object.assign(slider, { min: 0, max: shown.frames.length - 1, value: 0 });
  slider.oninput = () => { stop(); now.t = Number(slider.value); draw(); };
  now.part(".play").onclick = () => (now.timer ? stop() : play());
  now.part(".save").onclick = () => save({ frames: "false" });
  facts();
  table(FIRST);
  draw();
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play();
}

function play() {
  const mine = now;
  mine.part(".play").textContent = "❚❚";
  mine.part(".play").setAttribute("aria-label", "Pause");
  mine.timer = setInterval(() => {
    if (mine.panel.hidden) return;
    mine.t = (mine.t + 1) % mine.shown.frames.length;
    mine.part(".frame").value = mine.t;
    draw();
  }, 90);
}

function stop() {
  if (!now?.timer) return;
  clearInterval(now.timer);
  now.timer = null;
  now.part(".play").textContent = "▶";
  now.part(".play").setAttribute("aria-label", "Play");
}

function draw() {
  const { shown, pictures, t, part } = now;
  const { context, scale } = fit(part(".picture"), shown.width, shown.height);
  if (pictures) context.drawImage(pictures[t], 0, 0, shown.width, shown.height);
  else { context.fillStyle = "#111"; context.fillRect(0, 0, shown.width, shown.height); }
  part(".player output").textContent = `frame ${shown.frames[t] + 1}`;
  const known = (place) => place && place[0] !== null;
  shown.points.forEach((places, p) => {
    if (!known(places[t])) return;
    const colour = COLOURS[shown.motions[p] % COLOURS.length];
    context.strokeStyle = colour;
    context.lineWidth = 1.4 / scale;
    context.beginPath();
    for (let s = Math.max(0, t - TAIL); s <= t; s++) {
      if (!known(places[s])) continue;
      const [x, y] = places[s];
      if (s > 0 && known(places[s - 1])) context.lineTo(x + 0.5, y + 0.5);
      else context.moveTo(x + 0.5, y + 0.5);
    }
    context.stroke();
    const [x, y] = places[t];
    for (const [radius, fill] of [[3.6, "#111"], [2.6, colour]]) {
      context.beginPath();
      context.arc(x + 0.5, y + 0.5, radius / scale, 0, 7);
      context.fillStyle = fill;
      context.fill();
    }
  });
}

function facts() {
  const { answer, part } = now;
  const sizes = Array(answer.motions).fill(0);
  for (const label of answer.labels) if (label >= 0) sizes[label]++;
  const out = answer.labels.filter((label) => label < 0).length;
  const sure = answer.probability_of_motions;
  part(".facts").textContent = `${answer.motions} motion${answer.motions === 1 ? "" : "s"} of ${answer.labels.length} points` +
    (sure != null && sure < 1 ? `; probability of this number ${sure.toFixed(2)}` : "") +
    (out ? `; ${out} points in too few frames or in no motion` : "") + ".";
  part(".legend").replaceChildren(...sizes.map((n, k) => {
    const dot = element("span", { className: "dot" });
    dot.style.setProperty("--c", COLOURS[k % COLOURS.length]);
    return element("span", { className: "item" }, dot, `motion ${k + 1}`, element("span", { className: "count" }, String(n)));
  }));
}

function table(n) {
  const { answer, part } = now;
  const scores = answer.candidates.map((c) => c.score);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  part(".candidates tbody").replaceChildren(...answer.candidates.slice(0, n).map((c) => {
    const bar = element("i");
    bar.style.width = 100 * (high > low ? 0.03 + 0.97 * (c.score - low) / (high - low) : 1) + "%";
    return element("tr", {}, element("td", {}, c.family), element("td", { className: "n" }, String(c.dimension ?? "–")),
      element("td", { className: "n" }, c.score.toFixed(2)), element("td", {}, bar));
  }));
  const more = part(".all");
  more.hidden = n >= answer.candidates.length;
  more.textContent = `Show all ${answer.candidates.length}`;
  more.onclick = () => table(Infinity);
}

window.addEventListener("resize", () => now && !now.panel.hidden && draw());
