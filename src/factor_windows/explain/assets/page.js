// The report page of a plan: the time line, and what happens when one points at it or at the graphs, which Python drew.
// Everything that is shown comes from the JSON in the page, and only ever as text.
const data = JSON.parse(document.getElementById("plan").textContent);
const byId = new Map(data.nodes.map((node) => [node.id, node]));
const SVG = "http://www.w3.org/2000/svg";
const LANE = 12, LANES = 6, LEAST = 4;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((n) => [n, n * 1e3])
  .concat([1, 2, 5, 10, 15, 30].flatMap((n) => [n * 1e6, n * 60e6]), [1, 2, 3, 6, 12].map((n) => n * 3600e6),
    [1, 2, 7, 14, 28, 56, 91, 182, 364, 1820, 3640].map((n) => n * 86400e6)).sort((a, b) => a - b);

theme();
copying();
timeline(document.getElementById("timeline"));
for (const section of document.querySelectorAll("section")) graphs(section);

function theme() {
  const button = document.getElementById("theme");
  const dark = () =>
    (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    show();
  });
  show();
}

function copying() {
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.of).textContent;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // A page opened from a file may not use the clipboard's own interface in every browser.
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
        button.focus();
      }
      button.textContent = "Copied";
      document.getElementById("said").textContent = "The SQL was copied.";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }
}

// The time line

function instances(node, from, to) {
  if (node.instances) return node.instances.filter(([start, end]) => start >= from && end <= to);
  const found = [];
  if (node.edges) {
    const edges = new Set();
    for (const { step, offset } of node.edges) {
      for (let edge = offset + Math.ceil((from - offset) / step) * step; edge <= to; edge += step) edges.add(edge);
    }
    const ordered = [...edges].sort((a, b) => a - b);
    for (let i = 0; i + 1 < ordered.length; i++) found.push([ordered[i], ordered[i + 1]]);
    return found;
  }
  const first = node.offset + Math.ceil((from - node.offset) / node.slide) * node.slide;
  for (let start = first; start + node.range <= to; start += node.slide) found.push([start, start + node.range]);
  return found;
}

function madeOf(node, [start, end]) {
  // The instances of the parent that one instance reads: all inside, or the fewest that make it up.
  const parent = byId.get(node.parent);
  if (!parent) return [];
  const inside = instances(parent, start, end);
  if (parent.edges || parent.instances || inside.length <= Math.round(node.reads)) return inside;
  const chosen = [];
  for (let at = start; ; at += parent.stride) {
    const place = Math.min(at, end - parent.range);
    chosen.push([place, place + parent.range]);
    if (place === end - parent.range) return chosen;
  }
}

function lanes(shown) {
  const ends = [];
  return shown.map(([start, end]) => {
    let lane = ends.findIndex((other) => other <= start);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = end;
    return lane;
  });
}

function row(node, scale) {
  // What can be drawn of a node: its instances, every n-th of those that overlap much, or none that could be told apart.
  const all = instances(node, 0, data.span);
  if (node.about) return { node, all, shown: [], lane: [] };
  const length = all.length ? (all.at(-1)[1] - all[0][0]) / all.length : 0;
  const range = all.reduce((sum, [start, end]) => sum + end - start, 0) / Math.max(1, all.length);
  if (Math.max(length, Math.min(range, LEAST / scale / 2)) * scale < LEAST && range * scale < 4 * LEAST) return { node, all, shown: [], lane: [] };
  let every = 1, shown = all, lane = lanes(all.slice(0, 400));
  while (Math.max(0, ...lane) >= LANES || shown.length > 400) {
    every += 1;
    shown = all.filter((_, place) => place % every === 0);
    lane = lanes(shown.slice(0, 400));
  }
  return { node, all, shown, lane, every };
}

function timeline(place) {
  const width = Math.max(320, place.clientWidth), narrow = width < 700;
  const measure = document.createElement("canvas").getContext("2d");
  measure.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  const long = (text) => measure.measureText(text).width + 12;
  const left = narrow ? 6 : Math.min(320, Math.max(...data.nodes.map((node) => long(node.label)))), right = 30;
  const scale = (width - left - right) / data.span;
  const x = (time) => left + time * scale;
  const rows = data.nodes.map((node) => row(node, scale));
  let y = 26;
  for (const each of rows) {
    each.y = y + (narrow ? 18 : 0);
    y = each.y + (1 + Math.max(0, ...each.lane)) * LANE + (each.every > 1 ? 16 : 0) + 12;
  }
  const svg = element("svg", { width, height: y, viewBox: `0 0 ${width} ${y}`, class: "timeline", role: "group", "aria-label": "Instances of each window on a time line" });
  const clear = (step) => {
    for (let at = 0; at <= data.span; at += step) if (long(moment(at)) > step * scale) return false;
    return true;
  };
  const step = STEPS.find((each) => each * scale > 40 && clear(each)) ?? data.span;
  for (let at = 0; at <= data.span; at += step) {
    svg.append(element("line", { class: "tick", x1: x(at), x2: x(at), y1: 18, y2: y }));
    const first = at === 0 && narrow, last = x(at) + long(moment(at)) / 2 > width;
    svg.append(element("text", { class: "small", x: first ? 2 : last ? width - 2 : x(at), y: 12, "text-anchor": first ? "start" : last ? "end" : "middle" }, moment(at)));
  }
  const bars = new Map(), overlays = new Map();
  for (const { node, all, shown, lane, every, y: top } of rows) {
    const most = narrow ? width - 12 : left - 8;
    const label = element("text", { class: node.kind === "window" ? "label" : "label hidden", x: 4, y: narrow ? top - 5 : top + 10 }, fitted(node.label, (text) => long(text) - 12 <= most));
    label.append(element("title", {}, node.label));
    svg.append(label);
    const group = element("g", { tabindex: 0, role: "img", class: `row ${node.kind}` });
    const first = shown[Math.floor(shown.length / 2)] ?? all[Math.floor(all.length / 2)];
    group.setAttribute("aria-label", first ? sentence(node, first) : node.label);
    shown.forEach(([start, end], i) => {
      const bar = element("rect", {
        class: `instance ${node.kind}`, x: x(start) + 0.5, y: top + lane[i] * LANE,
        width: Math.max(1, (end - start) * scale - 1), height: LANE - 2, rx: 2,
      });
      bar.addEventListener("pointerenter", () => mark(node, [start, end]));
      bars.set(`${node.id} ${start} ${end}`, bar);
      group.append(bar);
    });
    const note = node.about ? `about ${node.about.toLocaleString("en")} instances`
      : all.length ? `${all.length.toLocaleString("en")} instances` : "begin and end with the events";
    if (!shown.length) group.append(...broken(node, all, note, x, top, long(note)));
    if (every > 1) group.append(element("text", { class: "small", x: x(shown[0][0]), y: top + (1 + Math.max(...lane)) * LANE + 10 }, `1 in ${every} shown`));
    const overlay = element("rect", { class: "overlay", y: top, height: LANE - 2, visibility: "hidden" });
    overlays.set(node.id, overlay);
    group.append(overlay);
    const walked = shown.length ? shown : all;
    group.addEventListener("focus", () => first && mark(node, first));
    group.addEventListener("keydown", (event) => {
      // The arrow keys walk along the instances.
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by || !walked.length) return;
      event.preventDefault();
      const at = walked.findIndex(([start, end]) => start === marked?.[0] && end === marked[1] && markedNode === node.id);
      mark(node, walked[Math.max(0, Math.min(walked.length - 1, at + by))]);
    });
    svg.append(group);
  }
  let marked = null, markedNode = null;
  function mark(node, instance) {
    for (const bar of bars.values()) bar.classList.remove("chosen", "read");
    for (const overlay of overlays.values()) overlay.setAttribute("visibility", "hidden");
    marked = instance;
    markedNode = node.id;
    bars.get(`${node.id} ${instance.join(" ")}`)?.classList.add("chosen");
    const parts = madeOf(node, instance);
    const seen = parts.map((part) => bars.get(`${node.parent} ${part.join(" ")}`)).filter(Boolean);
    for (const bar of seen) bar.classList.add("read");
    if (parts.length && !seen.length) {
      // They are too short or too many to be drawn one by one.
      const overlay = overlays.get(node.parent);
      overlay.setAttribute("x", x(parts[0][0]));
      overlay.setAttribute("width", Math.max(2, (parts.at(-1)[1] - parts[0][0]) * scale));
      overlay.setAttribute("visibility", "visible");
    }
    document.getElementById("instance").textContent = sentence(node, instance);
  }
  place.replaceChildren(svg);
}

function broken(node, all, note, x, top, long) {
  // Too many to be told apart: a few cells at both ends, which are not to scale, and between two breaks how many there are.
  const from = all.length ? x(all[0][0]) : x(0), to = all.length && !node.about ? x(all.at(-1)[1]) : x(data.span);
  const text = element("text", { class: "small", x: all.length ? (from + to) / 2 : from, y: top + 9, "text-anchor": all.length ? "middle" : "start" }, note);
  if (!all.length) return [text];
  const side = Math.max(0, Math.min(9 * 6, (to - from - long - 24) / 2));
  const cells = [];
  for (let at = 0; at + 9 <= side; at += 9) {
    for (const start of [from + at, to - at - 9]) cells.push(element("rect", { class: `instance ${node.kind}`, x: start + 0.5, y: top, width: 8, height: LANE - 2, rx: 2 }));
  }
  const slashes = [from + side + 4, to - side - 10].flatMap((at) => [0, 4].map((by) => element("line", { class: "break", x1: at + by, y1: top + LANE - 1, x2: at + by + 4, y2: top - 1 })));
  const middle = [[from + side + 16, (from + to - long) / 2], [(from + to + long) / 2, to - side - 16]]
    .filter(([a, b]) => b > a).map(([a, b]) => element("line", { class: "gap", x1: a, x2: b, y1: top + 5, y2: top + 5 }));
  return [...cells, ...slashes, ...middle, text];
}

function sentence(node, [start, end]) {
  const parent = byId.get(node.parent);
  const own = `${node.label}, from ${moment(start)} to ${moment(end)},`;
  if (!parent) return `${own} reads the raw events.`;
  // Of very many instances only the first ones are known.
  if (parent.about && end > parent.instances.at(-1)[1]) return `${own} is made of instances of ${parent.label}.`;
  const parts = madeOf(node, [start, end]).length;
  return `${own} is made of ${parts} instance${parts === 1 ? "" : "s"} of ${parent.label}.`;
}

function moment(micros) {
  if (!data.base) return duration(micros);
  const text = new Date((data.base + micros) / 1000).toISOString();
  return text.slice(0, 10) + (text.slice(11, 16) === "00:00" ? "" : ` ${text.slice(11, 16)} UTC`);
}

function duration(micros) {
  const units = [["d", 86400e6], ["h", 3600e6], ["min", 60e6], ["s", 1e6], ["ms", 1e3], ["µs", 1]];
  const parts = [];
  for (const [unit, length] of units) {
    const count = Math.floor(micros / length);
    if (count) parts.push(`${count} ${unit}`);
    micros -= count * length;
  }
  return parts.join(" ") || "0";
}

// The graphs

function graphs(section) {
  const figures = [...section.querySelectorAll("figure")];
  const drawings = figures.map((figure) => figure.querySelector("svg.fw-plan"));
  let scale = 1;
  // Those of one section have one scale, so that they can be compared.
  const zoom = (to) => {
    scale = Math.max(0.2, Math.min(4, to));
    for (const svg of drawings) {
      svg.setAttribute("width", svg.viewBox.baseVal.width * scale);
      svg.setAttribute("height", svg.viewBox.baseVal.height * scale);
    }
  };
  figures.forEach((figure, place) => {
    const svg = drawings[place];
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", figure.dataset.label);
    for (const group of svg.querySelectorAll(".node")) {
      // The page tells what a tooltip would.
      const title = group.querySelector("title");
      group.setAttribute("tabindex", 0);
      group.setAttribute("role", "img");
      group.setAttribute("aria-label", title.textContent);
      title.remove();
      const tell = () => details(group.dataset.node, svg);
      group.addEventListener("pointerenter", tell);
      group.addEventListener("focus", tell);
    }
    const buttons = figure.querySelector(".zoom");
    buttons.hidden = false;
    const on = (label, run) => buttons.querySelector(`[data-zoom="${label}"]`).addEventListener("click", run);
    on("in", () => zoom(scale * 1.3));
    on("out", () => zoom(scale / 1.3));
    on("fit", () => zoom(Math.min(1, ...drawings.map((each) => each.closest(".canvas").clientWidth / each.viewBox.baseVal.width))));
    svg.addEventListener("wheel", (event) => {
      // The wheel scrolls the page, as everywhere; with Ctrl it zooms.
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(scale * 2 ** (-event.deltaY / 500));
    }, { passive: false });
  });
}

function details(name, svg) {
  const place = document.getElementById("details");
  for (const path of svg.querySelectorAll(".possible")) {
    path.classList.toggle("own", name !== undefined && [path.dataset.above, path.dataset.below].includes(name));
  }
  if (name === undefined) {
    place.replaceChildren(html("h3", "raw events"), html("p", data.rate));
    return;
  }
  const node = byId.get(name);
  const list = document.createElement("dl");
  for (const [term, value] of node.facts) list.append(html("dt", term), html("dd", value));
  place.replaceChildren(html("h3", node.label), list);
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function html(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function fitted(text, fits) {
  if (fits(text)) return text;
  let end = text.length;
  while (end > 1 && !fits(`${text.slice(0, end)}…`)) end -= 1;
  return `${text.slice(0, end)}…`;
}
