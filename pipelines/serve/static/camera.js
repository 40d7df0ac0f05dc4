// Sends camera frames, one at a time, to the server on this computer; persons keep their colour.
import { ask, element, fit } from "./ask.js";

const COLOURS = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#ffffff"];
const WIDTH = 640;  // maximum pixels of a frame that is sent
const REASONS = {
  NotAllowedError: "No permission to use the camera: it was denied here or by the browser.",
  NotFoundError: "No camera was found.",
  OverconstrainedError: "No camera was found.",
  NotReadableError: "The camera cannot be read: another program may be using it.",
};
const colourOf = (person) => COLOURS[(person - 1) % COLOURS.length];

export function connectCamera(panel) {
  const part = (selector) => panel.querySelector(selector);
  const video = element("video", { muted: true, playsInline: true });
  const canvas = element("canvas");
  let running = null;
  let stream = null;

  part(".start").onclick = () => (running ? stop() : start());
  // Stop the camera when the tab or window is left.
  window.addEventListener("resize", () => running && panel.hidden && stop());
  document.addEventListener("visibilitychange", () => running && document.hidden && stop());
  window.addEventListener("pagehide", stop);

  async function start() {
    say("");
    if (!navigator.mediaDevices?.getUserMedia) return say("The browser does not allow camera access for this address: open the page on this computer, as localhost or 127.0.0.1.");
    const mine = (running = {});
    part(".start").textContent = "Stop the camera";
    try {
      const given = await navigator.mediaDevices.getUserMedia({ audio: false, video: { width: { ideal: WIDTH } } });
      if (mine !== running) return release(given);
      stream = given;
      stream.getTracks().forEach((track) => { track.onended = () => { if (mine === running) { stop(); say("The camera was disconnected."); } }; });
      video.srcObject = stream;
      await video.play();
      await follow(mine);
    } catch (problem) {
      if (mine === running) say(REASONS[problem.name] ?? problem.message);
    } finally {
      if (mine === running) stop();
    }
  }

  function stop() {
    running = null;  // the answer to a pending frame is ignored; the server's worker continues
    if (stream) release(stream);
    stream = video.srcObject = null;
    part(".start").textContent = "Start the camera";
  }

  async function follow(mine) {
    let [session, begin] = ["", 0];
    for (let n = 0; mine === running; n++) {
      // The server loads its model for the first frame; the rate is measured from the second on.
      if (n < 2) [session, begin] = [String(Math.random()), performance.now()];
      const scale = Math.min(1, WIDTH / video.videoWidth);
      [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight].map((side) => Math.round(side * scale));
      canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
      const time = (performance.now() - begin) / 1000;
      const file = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.92));
      const body = new FormData();
      body.set("session", session);
      body.set("time", time.toFixed(4));
      body.set("file", file, "frame.jpg");
      const answer = await ask("camera", body, null, () => {});
      if (mine !== running) return;
      if (!n) continue;
      part(".result").hidden = false;
      panel.classList.add("has-result");
      draw(answer);
      part(".facts").textContent = `${answer.faces.length} person${answer.faces.length === 1 ? "" : "s"}, ` +
        `frame ${n}, ${(n / Math.max((performance.now() - begin) / 1000, 0.001)).toFixed(1)} per second.`;
    }
  }

  function draw(answer) {
    const { context, scale } = fit(part(".picture"), answer.width, answer.height);
    context.drawImage(canvas, 0, 0, answer.width, answer.height);
    context.lineWidth = 3 / scale;
    context.font = `600 ${15 / scale}px system-ui, sans-serif`;
    for (const { person, box: [x0, y0, x1, y1], keypoints } of answer.faces) {
      context.strokeStyle = context.fillStyle = colourOf(person);
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
      context.fillText(`Person ${person}`, x0, Math.max(14 / scale, y0 - 6 / scale));
      for (const [x, y] of Object.values(keypoints)) context.fillRect(x + 0.5 - 2 / scale, y + 0.5 - 2 / scale, 4 / scale, 4 / scale);
    }
    part(".legend").replaceChildren(...answer.faces.map(({ person, probability }) => {
      const dot = element("span", { className: "dot" });
      dot.style.setProperty("--c", colourOf(person));
      return element("span", { className: "item" }, dot, `person ${person}`, element("span", { className: "count" }, `${Math.round(100 * probability)} %`));
    }));
  }

  function say(text) {
    part(".error").textContent = text;
    part(".error").hidden = !text;
  }
}

const release = (stream) => stream.getTracks().forEach((track) => track.stop());
