// The report page of a plan: the time line, the graphs, and what happens when one points at them.
// Everything that is shown comes from the JSON in the page, and only ever as text.
import { graphlib, layout } from "@dagrejs/dagre";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";

const data = JSON.parse(document.getElementById("plan").textContent);
const byId = new Map(data.nodes.map((node) => [node.id, node]));
const RAW = "raw";
const SVG = "http://www.w3.org/2000/svg";

theme();
copying();
timeline(document.getElementById("timeline"));
graph("before", data.nodes.filter((n) => n.exposed), (n) => [{ from: RAW, chosen: true, label: n.raw_reads }], "raw_cost");
graph("after", data.nodes, (n) => [{ from: n.parent ?? RAW, chosen: true, label: n.reads }], "cost");
graph("coverage", data.nodes, (n) => [
  { from: n.parent ?? RAW, chosen: true, label: "" },
  ...n.alternatives.filter((a) => a.parent !== null).map((a) => ({ from: a.parent, chosen: false, label: "" })),
], "cost");

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
  if (parent.edges || parent.instances || inside.length <= Math.round(node.reads_number)) return inside;
  const chosen = [];
  for (let at = start; ; at += parent.stride) {
    const place = Math.min(at, end - parent.range);
    chosen.push([place, place + parent.range]);
    if (place === end - parent.range) return chosen;
  }
}

function timeline(place) {
  const lanes = (node, shown) => {
    const ends = [];
    return shown.map(([start, end]) => {
      let lane = ends.findIndex((other) => other <= start);
      if (lane < 0) lane = ends.push(0) - 1;
      ends[lane] = end;
      return lane;
    });
  };
  const MOST = 120, LANE = 12, LEFT = 170, RIGHT = 30, WIDTH = 920;
  const span = data.span;
  const rows = data.nodes.map((node) => {
    const all = instances(node, 0, span);
    const shown = all.slice(0, MOST);
    return { node, shown, more: all.length - shown.length, lane: lanes(node, shown) };
  });
  let y = 26;
  for (const row of rows) {
    row.y = y;
    y += (Math.min(6, 1 + Math.max(0, ...row.lane))) * LANE + 12;
  }
  const x = (time) => LEFT + (time / span) * (WIDTH - LEFT - RIGHT);
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${y}`, class: "timeline", role: "group", "aria-label": "Instances of each window on a time line" });
  for (const tick of data.ticks) {
    svg.append(element("line", { class: "tick", x1: x(tick.at), x2: x(tick.at), y1: 18, y2: y }));
    svg.append(element("text", { class: "small", x: x(tick.at), y: 12, "text-anchor": "middle" }, tick.label));
  }
  const bars = new Map();
  for (const { node, shown, more, lane, y: top } of rows) {
    const label = element("text", { class: node.exposed ? "" : "hidden", x: 4, y: top + 10 }, clipped(node.label, 23));
    label.append(element("title", {}, node.label));
    svg.append(label);
    const group = element("g", { tabindex: 0, role: "img", class: `row ${node.kind}` });
    const first = shown[Math.floor(shown.length / 2)];
    group.setAttribute("aria-label", first ? sentence(node, first) : node.label);
    shown.forEach(([start, end], i) => {
      const bar = element("rect", {
        class: `instance ${node.kind}`, x: x(start) + 0.5, y: top + (lane[i] % 6) * LANE,
        width: Math.max(1, x(end) - x(start) - 1), height: LANE - 2, rx: 2,
      });
      bar.addEventListener("pointerenter", () => mark(node, [start, end]));
      bars.set(`${node.id} ${start}`, bar);
      group.append(bar);
    });
    group.addEventListener("focus", () => first && mark(node, first));
    group.addEventListener("keydown", (event) => {
      // The arrow keys walk along the instances.
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !shown.length) return;
      event.preventDefault();
      const at = shown.findIndex(([start]) => start === marked?.[0] && markedNode === node.id);
      mark(node, shown[Math.max(0, Math.min(shown.length - 1, at + step))]);
    });
    svg.append(group);
    if (more > 0) svg.append(element("text", { class: "small", x: WIDTH - RIGHT - 4, y: top + 9, "text-anchor": "end" }, `and ${more} more`));
  }
  let marked = null, markedNode = null;
  function mark(node, instance) {
    for (const bar of bars.values()) bar.classList.remove("chosen", "read");
    marked = instance;
    markedNode = node.id;
    bars.get(`${node.id} ${instance[0]}`)?.classList.add("chosen");
    for (const [start] of madeOf(node, instance)) bars.get(`${node.parent} ${start}`)?.classList.add("read");
    document.getElementById("instance").textContent = sentence(node, instance);
  }
  place.replaceChildren(svg);
}

function sentence(node, [start, end]) {
  const parts = madeOf(node, [start, end]).length;
  const own = `${node.label}, from ${duration(start)} to ${duration(end)},`;
  if (!byId.get(node.parent)) return `${own} reads the raw events.`;
  return `${own} is made of ${parts} instance${parts === 1 ? "" : "s"} of ${byId.get(node.parent).label}.`;
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

function graph(name, nodes, edgesOf, cost) {
  const figure = document.getElementById(name);
  const narrow = figure.clientWidth < 600;
  const width = narrow ? 128 : 164, height = 44;
  const laid = new graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 12, ranksep: narrow ? 40 : 56, marginx: 6, marginy: 6 });
  laid.setDefaultEdgeLabel(() => ({}));
  laid.setNode(RAW, { width, height });
  for (const node of nodes) laid.setNode(node.id, { width, height });
  const edges = nodes.flatMap((node) => edgesOf(node).map((edge) => ({ ...edge, to: node.id })));
  for (const { from, to } of edges) laid.setEdge(from, to);
  layout(laid);
  const size = laid.graph();
  const svg = element("svg", { class: "graph", role: "group", "aria-label": figure.dataset.label });
  const inner = element("g", {});
  svg.append(inner);
  for (const edge of edges) inner.append(...link(laid.node(edge.from), laid.node(edge.to), edge, width));
  inner.append(box(laid.node(RAW), { label: "raw events", note: data.rate, kind: "raw", part: 0, said: `raw events: ${data.rate}` }, null, width, height));
  for (const node of nodes) {
    const value = cost === "cost" ? node : { cost: node.raw_cost, part: node.raw_part };
    const shown = { label: node.label, note: `cost ${value.cost}`, kind: node.kind, part: value.part };
    shown.said = `${node.label}: cost ${value.cost}`;
    inner.append(box(laid.node(node.id), shown, node, width, height));
  }
  figure.querySelector(".canvas").replaceChildren(svg);
  movable(figure, svg, inner, size);
}

function link(a, b, edge, width) {
  const x1 = a.x + width / 2, x2 = b.x - width / 2, middle = (x1 + x2) / 2;
  const path = element("path", {
    class: edge.chosen ? "link" : "link possible",
    d: `M${x1},${a.y} C${middle},${a.y} ${middle},${b.y} ${x2},${b.y}`,
  });
  if (!edge.label) return [path];
  return [path, element("text", { class: "small reads", x: x2 - 4, y: b.y - 4, "text-anchor": "end" }, `${edge.label} ×`)];
}

function box(at, shown, node, width, height) {
  const group = element("g", {
    class: `node ${shown.kind}`, tabindex: 0, role: "img", "aria-label": shown.said,
    transform: `translate(${at.x - width / 2}, ${at.y - height / 2})`,
  });
  group.append(element("rect", { class: "box", width, height, rx: 6 }));
  if (shown.part) group.append(element("rect", { class: "bar", x: 1, y: height - 4, width: Math.max(1, Math.min(1, shown.part) * (width - 2)), height: 3, rx: 1.5 }));
  group.append(element("text", { x: 8, y: 18 }, clipped(shown.label, width / 7.4)));
  group.append(element("text", { class: "small", x: 8, y: 33 }, clipped(shown.note, width / 6.2)));
  const tell = () => details(node);
  group.addEventListener("pointerenter", tell);
  group.addEventListener("focus", tell);
  return group;
}

function details(node) {
  const place = document.getElementById("details");
  if (!node) {
    place.replaceChildren(html("h3", "raw events"), html("p", data.rate));
    return;
  }
  const list = document.createElement("dl");
  for (const [term, value] of node.facts) list.append(html("dt", term), html("dd", value));
  place.replaceChildren(html("h3", node.label), list);
}

function movable(figure, svg, inner, size) {
  const canvas = figure.querySelector(".canvas");
  // A deep plan is not shrunk until nobody can read it: the canvas scrolls instead.
  const scale = Math.max(0.75, Math.min(1.15, canvas.clientWidth / size.width));
  const wide = Math.max(canvas.clientWidth, size.width * scale);
  const tall = Math.max(90, Math.min(size.height * scale, 620));
  svg.setAttribute("width", wide);
  svg.setAttribute("height", tall);
  svg.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
  const fit = Math.min(scale, Math.max(0.5, tall / size.height));
  const home = zoomIdentity.translate((wide - size.width * fit) / 2, Math.max(0, (tall - size.height * fit) / 2)).scale(fit);
  const moved = zoom().scaleExtent([fit / 4, 4])
    // The wheel scrolls the page, as everywhere; with Ctrl it zooms.
    .filter((event) => (event.type === "wheel" ? event.ctrlKey : !event.button))
    .on("zoom", (event) => inner.setAttribute("transform", event.transform));
  const chosen = select(svg).call(moved).call(moved.transform, home);
  const buttons = figure.querySelector(".zoom");
  buttons.hidden = false;
  const on = (label, run) => buttons.querySelector(`[data-zoom="${label}"]`).addEventListener("click", run);
  on("in", () => chosen.call(moved.scaleBy, 1.3));
  on("out", () => chosen.call(moved.scaleBy, 1 / 1.3));
  on("fit", () => chosen.call(moved.transform, home));
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

function clipped(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.floor(most) - 1)}…`;
}
