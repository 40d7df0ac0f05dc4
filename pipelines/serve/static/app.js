// Tabs and their panels.
import { connect } from "./input.js";
import { connectCamera } from "./camera.js";
import { showFaces } from "./faces.js";
import { connectLabel } from "./label.js";
import { showMotion } from "./motion.js";
import { showPets } from "./pets.js";
import { prepareSelect, showSelect } from "./select.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];
const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));

function open(tab, focus = false) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    panelOf(other).hidden = !chosen;
  }
  if (focus) tab.focus();
  history.replaceState(null, "", "#" + tab.id.slice(4));
  window.dispatchEvent(new Event("resize"));
}

for (const tab of tabs) {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", (event) => {
    const there = tabs.filter((one) => !one.hidden);
    const at = there.indexOf(tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: there.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    open(there[(to + there.length) % there.length], true);
  });
}

// A file dropped outside a panel must not replace the page.
for (const type of ["dragover", "drop"]) window.addEventListener(type, (event) => event.preventDefault());

const MIN_PROBABILITY = 0.05;  // minimum of the slider
const panel = (name) => document.getElementById("panel-" + name);
connect(panel("faces"), {
  show: showFaces,
  fields: async (form, file) => {
    const picture = await createImageBitmap(file).catch(() => null);
    const asked = { min_probability: MIN_PROBABILITY, ...(picture ? {} : { picture: "true" }) };
    if (!picture || form.elements.tiny.checked) return asked;
    // Eyes a 48th of the image apart belong to a face of about a 20th of its width; smaller faces take most of the time.
    return { min_size: Math.max(24, Math.max(picture.width, picture.height) / 48).toFixed(1), ...asked };
  },
});
connectCamera(panel("camera"));
connect(panel("motion"), { show: showMotion, fields: () => ({ frames: "true" }) });
connect(panel("pets"), { show: showPets, fields: () => ({ evidence: "true" }) });
connect(panel("select"), { show: showSelect, prepare: prepareSelect, fields: () => ({ report: "true" }) });

const wanted = tabs.find((tab) => "#" + tab.id.slice(4) === location.hash);
if (wanted && !wanted.hidden) open(wanted);
fetch("api/status").then((r) => r.json()).then((status) => {
  document.querySelector(".version").textContent = "annealed " + status.version;
  if (!status.label) return;
  const tab = document.getElementById("tab-label");
  tab.hidden = false;
  connectLabel(panel("label"));
  if (!location.hash || wanted === tab) open(tab);
}).catch(() => {});
