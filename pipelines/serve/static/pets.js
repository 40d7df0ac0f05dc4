// The label, its probability, and the location of the evidence.
import { element, fit, pictureOf } from "./ask.js";

let now = null;

export async function showPets(panel, answer) {
  const [picture, heat] = await Promise.all([pictureOf(answer.evidence.picture), pictureOf(answer.evidence.heat)]);
  now = { panel, picture, heat, part: (selector) => panel.querySelector(selector) };
  const percent = (100 * answer.probability).toFixed(answer.probability > 0.995 ? 1 : 0);
  now.part(".label").textContent = answer.label;
  now.part(".bar i").style.width = percent + "%";
  now.part(".facts").textContent = `Probability ${percent} %`;
  const most = Math.max(...answer.evidence.contributions.map((c) => Math.abs(c.value)), 1e-9);
  now.part(".bars").replaceChildren(...answer.evidence.contributions.flatMap((c) => {
    const bar = element("i");
    const share = 50 * Math.abs(c.value) / most;
    Object.assign(bar.style, { width: share + "%", left: (c.value > 0 ? 50 : 50 - share) + "%", background: c.value > 0 ? "#d53c32" : "#0072b2" });
    return [element("span", {}, c.name), element("span", { className: "track" }, bar),
      element("span", { className: "n" }, (c.value > 0 ? "+" : "−") + Math.abs(c.value).toFixed(2))];
  }));
  now.part("#heat").oninput = draw;
  draw();
}

function draw() {
  const { part, picture, heat } = now;
  const share = Number(part("#heat").value);
  part(".slider output").textContent = Math.round(100 * share) + " %";
  const { context } = fit(part(".picture"), picture.width, picture.height);
  context.filter = `grayscale(${Math.min(1, 1.4 * share)}) brightness(${1 + 0.12 * share})`;
  context.drawImage(picture, 0, 0);
  context.filter = "none";
  context.globalAlpha = share;
  context.drawImage(heat, 0, 0, picture.width, picture.height);
  context.globalAlpha = 1;
}

window.addEventListener("resize", () => now && !now.panel.hidden && draw());
