// The report of a selection, and its downloads.
import { element } from "./ask.js";

const HEAD = 65536;  // bytes that contain the first line
const SAMPLE_TARGET = "diagnosis";

// Column names of a text file, from which the target is chosen.
export async function prepareSelect(form, file, isSample) {
  const { target } = form.elements;
  const list = document.getElementById("columns");
  list.replaceChildren();
  const bringsTarget = /\.(npz|svm|svmlight|libsvm)$/i.test(file.name);
  target.disabled = bringsTarget;
  target.required = !bringsTarget;
  target.placeholder = bringsTarget ? "in the file" : "column to predict";
  if (bringsTarget || !/\.(csv|tsv)$/i.test(file.name)) return;
  const names = header(await file.slice(0, HEAD).text());
  list.replaceChildren(...names.map((value) => element("option", { value })));
  if (isSample) target.value = SAMPLE_TARGET;
  else if (!names.includes(target.value)) target.value = "";
}

function header(text) {
  const line = text.replace(/^\ufeff/, "").split(/\r?\n/, 1)[0];
  const separator = [",", "\t", ";", "|"].map((s) => [line.split(s).length, s]).sort((a, b) => b[0] - a[0])[0][1];
  const found = [];
  let [word, quoted] = ["", false];
  for (const character of line + separator) {
    if (character === '"') quoted = !quoted;
    else if (character === separator && !quoted) { found.push(word.trim()); word = ""; }
    else word += character;
  }
  return found.filter(Boolean);
}

// The report is as high as its content at any width.
const sizes = new ResizeObserver(([{ target }]) => {
  const { document } = target.contentWindow;
  target.style.height = Math.ceil(document.documentElement.getBoundingClientRect().height + 64) + "px";
});

export async function showSelect(panel, answer, file, waited) {
  const part = (selector) => panel.querySelector(selector);
  const k = answer.n_columns;
  part(".facts").textContent = `${k} column${k === 1 ? "" : "s"} selected from ${answer.n_rows} rows in ${Math.round(waited)} s.`;
  const frame = part(".report");
  await new Promise((done) => { frame.onload = done; frame.srcdoc = answer.report; });
  sizes.disconnect();
  sizes.observe(frame);
  const { report, ...record } = answer;
  const stem = file.name.replace(/\.[^.]*$/, "");
  part(".downloads").replaceChildren(
    save(`${stem}_select.html`, report, "text/html", "Save the report"),
    save(`${stem}_select.json`, JSON.stringify(record, null, 1), "application/json", "Save as JSON"),
  );
}

const save = (download, text, type, label) => element("a", { download, href: URL.createObjectURL(new Blob([text], { type })) }, label);
