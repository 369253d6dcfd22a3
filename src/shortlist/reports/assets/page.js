"use strict";
(() => {
  // All numbers were worked out beforehand; this only looks them up and draws. Names enter as text, never as HTML.
  const D = JSON.parse(document.getElementById("numbers").textContent);
  const $ = (id) => document.getElementById(id);
  const color = (i) => `var(--c${i % 8})`;
  const percent = (x, digits = 1) => (x == null ? "–" : (100 * x).toFixed(digits) + "\u202f%");
  const decimals = (x, digits = 2) => (x == null ? "–" : x.toFixed(digits));
  const SVG = "http://www.w3.org/2000/svg";
  const several = D.models.length > 1;
  const called = (model, rule) => (several ? `${model.name}, ${rule}` : rule);
  let at = D.start, shown = 0;

  function make(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value != null) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  function draw(name, attributes = {}, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text != null) node.textContent = text;
    return node;
  }

  // ---- charts: axes, and what stands between them, as charts.py describes them, in the width of their box

  const stroke = (c) => (c == null ? "var(--soft)" : color(c));
  function path(points, X, Y) {
    let d = "", pen = false;
    for (const [x, y] of points) {
      if (x == null || y == null) { pen = false; continue; }
      d += `${pen ? "L" : "M"}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`;
      pen = true;
    }
    return d;
  }
  function scale({ from, to, log }, begin, end) {
    const share = log ? (v) => (to > from ? Math.log(v / from) / Math.log(to / from) : 0.5) : (v) => (v - from) / (to - from || 1);
    return (v) => begin + (end - begin) * share(v);
  }
  function drawChart(box, chart) {
    const c = { ...chart, ...chart.at?.[at] }, height = c.height, width = Math.max(240, Math.round(box.clientWidth || 320));
    const [left, right, top, bottom] = [50, width - 14, 12, height - (c.x.name ? 44 : 26)];
    const X = scale(c.x, left, right), Y = scale(c.y, bottom, top), middle = (top + bottom) / 2;
    const bars = (c.bars ?? []).map((share, x) => [x, share, x === c.bars.length - 1 && c.x.more ? `${x}+` : String(x)]);
    const named = c.bars && bars.filter(([, share]) => share >= 0.005).map(([, share, size]) => `${percent(share, 0)} of the sets have ${size} labels`);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": c.description + (named ? `: ${named.join(", ")}.` : "") });
    const add = (...shape) => { const node = draw(...shape); svg.append(node); return node; };
    for (const [value, name] of c.y.ticks) {
      add("line", { class: "grid", x1: left, x2: right, y1: Y(value), y2: Y(value) });
      add("text", { x: left - 7, y: Y(value) + 4, "text-anchor": "end" }, name);
    }
    add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    let taken = -1e9;
    for (const [value, name] of c.x.ticks ?? bars.map(([x, , size]) => [x, size])) {
      const room = 4.2 * name.length + 6;
      if (X(value) - room < taken) continue; // no room for it
      taken = X(value) + room;
      add("text", { x: X(value), y: bottom + 17, "text-anchor": "middle" }, name);
    }
    if (c.x.name) add("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, c.x.name);
    if (c.y.name) add("text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, c.y.name);
    for (const b of c.bands ?? []) add("path", { class: "band", d: path(b.points, X, Y) + "Z", style: `fill:${color(b.color)}` });
    const wide = Math.max(2, Math.min(44, (right - left) / bars.length * 0.78));
    for (const [x, share, size] of bars) if (share > 0)
      add("rect", { x: X(x) - wide / 2, width: wide, y: Y(share), height: Math.max(1, bottom - Y(share)), rx: Math.min(3, wide / 4), style: `fill:${color(c.color)}` })
        .append(draw("title", {}, `${size} labels: ${percent(share)}`));
    if (c.upright) add("line", { class: c.upright.kind, x1: X(c.upright.x), x2: X(c.upright.x), y1: top, y2: bottom });
    for (const [x, share] of bars) if (bars.length <= 12 && share >= 0.01)
      add("text", { class: "value", x: X(x), y: Math.max(10, Y(share) - 3), "text-anchor": "middle" }, (100 * share).toFixed(0));
    for (const l of c.lines ?? []) add("path", { class: `line ${l.kind}`, d: path(l.points, X, Y), style: `stroke:${stroke(l.color)}` });
    for (const { point: [x, y], square, color: of } of c.dots ?? [])
      square ? add("rect", { class: "dot", x: X(x) - 4, y: Y(y) - 4, width: 8, height: 8, style: `fill:${color(of)}` })
        : add("circle", { class: "dot", cx: X(x), cy: Y(y), r: 5, style: `fill:${color(of)}` });
    for (const [x, y, text] of c.notes ?? []) add("text", { x: X(x), y: Y(y) + 16, "text-anchor": "end" }, text);
    box.replaceChildren(svg);
    return { svg, X, width };
  }
  function panels(box, charts, kind = "") {
    if (box.children.length !== charts.length)
      box.replaceChildren(...charts.map(() => make("div", { class: kind || null }, make("h4"), make("div"))));
    charts.forEach((chart, i) => {
      const [heading, body] = box.children[i].children, detail = chart.at?.[at].detail;
      heading.replaceChildren(chart.title, ...(detail ? [" ", make("small", {}, detail)] : []));
      drawChart(body, chart);
    });
  }
  function legend(box, entries) {
    box.replaceChildren(...entries.map(([name, of, kind]) => {
      const line = draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
      line.append(draw("line", { x1: 1, x2: 25, y1: 5, y2: 5, class: `line ${kind}`, style: `stroke:${color(of)}` }));
      return make("span", {}, line, name);
    }));
  }

  function drawAccuracy() {
    if (!D.charts.accuracy) return;
    const { svg, X, width } = drawChart($("chart-accuracy"), D.charts.accuracy);
    const move = (event) => {
      const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * width;
      const near = D.grid.map((k) => Math.abs(X(k) - x));
      choose(near.indexOf(Math.min(...near)));
    };
    svg.addEventListener("pointerdown", (event) => {
      move(event);
      // the chart is drawn anew while K moves: listen on the window until the button is released
      const drag = (e) => { if (e.buttons) move(e); };
      window.addEventListener("pointermove", drag);
      window.addEventListener("pointerup", () => window.removeEventListener("pointermove", drag), { once: true });
    });
  }
  function drawSizes() {
    panels($("chart-sizes"), D.charts.sizes);
    if (D.shots.length) panels($("chart-shots"), D.charts.shots[shown]);
  }
  const drawLevels = () => { if (D.charts.levels) drawChart($("chart-levels"), D.charts.levels); };
  const drawTraining = () => { if (D.charts.training.length) panels($("chart-training"), D.charts.training, "card"); };

  // ---- tables

  const heading = (text, numeric) => make("th", { scope: "col", class: numeric ? "num" : null }, text);
  const cell = (text, kind = "num") => make("td", { class: kind }, text);
  function cellWithSpread(shown, spread, digits, kind = "num") {
    const td = cell(shown, kind);
    if (spread != null) td.append(" ", make("small", {}, `± ${spread.toFixed(digits)}`));
    return td;
  }
  const swatch = (i) => { const s = make("span", { class: "swatch" }); s.style.background = color(i); return s; };
  // with one run its name would only repeat itself: the rule alone names the row
  const ruleHeadings = () => (several ? [heading("Run"), heading("Rule")] : [heading("Rule")]);
  const ruleCells = (i, rule) => several
    ? [make("th", { scope: "row", class: D.models[i].name.length < 22 ? "short" : "name" }, swatch(i), D.models[i].name), cell(rule, "")]
    : [make("th", { scope: "row" }, rule)];

  function fillAtK() {
    const extra = D.levels.length ? [["covers", "Holds every right label"], ["exact", "Is exactly them"]] : [];
    const [head, body] = [$("at-k").tHead, $("at-k").tBodies[0]];
    head.replaceChildren(make("tr", {}, ...ruleHeadings(), heading("Mean size", true), heading(D.words.accuracy, true), ...extra.map(([, name]) => heading(name, true))));
    const rows = D.models.flatMap((m, i) => [["AverageK", m.average], ["TopK", m.top]].map(([rule, r]) => ({ i, rule, r })));
    const best = Object.fromEntries(["accuracy", ...extra.map(([key]) => key)].map((key) => [key, Math.max(...rows.map(({ r }) => r[key][at] ?? -1))]));
    body.replaceChildren(...rows.map(({ i, rule, r }) => make("tr", { "data-run": i, "data-rule": rule },
      ...ruleCells(i, rule),
      cellWithSpread(decimals(r.size[at]), r.size_spread?.[at], 2),
      ...["accuracy", ...extra.map(([key]) => key)].map((key) => {
        const value = r[key][at];
        const spread = r[`${key}_spread`]?.[at];
        return cellWithSpread(percent(value), spread == null ? null : 100 * spread, 1, value != null && value === best[key] ? "num best" : "num");
      }))));
    if (!D.levels.length) return;
    const table = $("level-table");
    table.tHead.replaceChildren(make("tr", {}, ...ruleHeadings(), ...D.levels.map((l) => heading(`${l.name} right`, true))));
    table.tBodies[0].replaceChildren(...rows.map(({ i, rule, r }) => make("tr", {}, ...ruleCells(i, rule), ...r.level_size[at].map((v) => cell(decimals(v))))),
      make("tr", {}, make("th", { scope: "row", colspan: several ? 2 : 1 }, "Examples"), ...D.levels.map((l) => cell(l.examples.toLocaleString("en")))));
  }
  function fillAllK() {
    const table = $("all-k"), rules = D.models.flatMap((m) => [[called(m, "AverageK"), m.average], [called(m, "TopK"), m.top]]);
    table.tHead.replaceChildren(make("tr", {}, heading("K", true), ...rules.map(([name]) => heading(name, true))));
    table.tBodies[0].replaceChildren(...D.grid.map((k, j) => make("tr", {}, make("th", { scope: "row", class: "num" }, String(k)), ...rules.map(([, r]) => cell(percent(r.accuracy[j]))))));
  }

  // ---- the slider

  let speak = 0;
  function choose(place) {
    at = Math.max(0, Math.min(D.grid.length - 1, place));
    const k = D.grid[at], slider = $("k");
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${k} label${k === 1 ? "" : "s"} per example on average`);
    $("k-out").textContent = String(k);
    for (const node of document.querySelectorAll(".k-here")) node.textContent = String(k);
    drawAccuracy(); drawSizes(); drawLevels(); fillAtK();
    clearTimeout(speak); // a screen reader hears the result once the slider rests
    speak = setTimeout(() => {
      $("k-summary").textContent = D.models.map((m) => `${m.name}: AverageK ${percent(m.average.accuracy[at])}, TopK ${percent(m.top.accuracy[at])}`).join(" · ");
    }, 150);
  }

  // ---- the table of labels

  const STEP = 25;
  let sortBy = "held", upwards = true, visible = STEP;
  function labelColumns() {
    const L = D.labels, m = L.models[shown];
    return [
      ["names", "Label", L.names, (v) => v, "name"],
      ...(L.groups ? [["groups", "Group", L.groups, (v) => v, ""]] : []),
      ...(L.train ? [["train", "Training examples", L.train, (v) => v.toLocaleString("en"), "num"]] : []),
      ["count", "Examples", L.count, (v) => v.toLocaleString("en"), "num"],
      ...(L.unknown ? [["unknown", "Unknown", L.unknown, (v) => v.toLocaleString("en"), "num"]] : []),
      ["held", "Found", m.held, percent, "num"],
      ["precision", "Right when listed", m.precision, percent, "num"],
      ["size", "Mean set size", m.size, (v) => decimals(v), "num"],
      ["taken", "Taken for", m.taken.map((t) => (t < 0 ? null : L.names[t])), (v) => v ?? "–", "name"],
    ];
  }
  function fillLabels() {
    const columns = labelColumns(), values = columns.find(([key]) => key === sortBy)[2], wanted = $("filter").value.trim().toLowerCase();
    const order = D.labels.names.map((_, i) => i).filter((i) => D.labels.names[i].toLowerCase().includes(wanted));
    order.sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (x == null || y == null) return (x == null) - (y == null); // nothing known: last, whatever the direction
      return (typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y) * (upwards ? 1 : -1) || a - b;
    });
    const table = $("label-table");
    if (!table.tHead.rows.length) {
      table.tHead.append(make("tr", {}, ...columns.map(([key, name, , , kind]) => {
        const button = make("button", { type: "button" }, name);
        button.addEventListener("click", () => {
          upwards = sortBy === key ? !upwards : true;
          sortBy = key;
          fillLabels();
        });
        return make("th", { scope: "col", class: kind, "data-key": key }, button);
      })));
    }
    for (const th of table.tHead.rows[0].cells)
      th.dataset.key === sortBy ? th.setAttribute("aria-sort", upwards ? "ascending" : "descending") : th.removeAttribute("aria-sort");
    table.tBodies[0].replaceChildren(...order.slice(0, visible).map((i) => make("tr", {}, ...columns.map(([key, , column, format, kind]) => {
      const text = format(column[i]);
      if (key === "names") return make("th", { scope: "row", class: kind }, text);
      const td = cell(text, kind);
      if (key === "held" && column[i] != null) {
        const fill = make("i");
        fill.style.width = `${100 * column[i]}%`;
        td.append(make("span", { class: "meter", "aria-hidden": "true" }, fill));
      }
      return td;
    }))));
    $("filter-count").textContent = wanted ? `${order.length} of ${D.labels.names.length}` : "";
    $("label-more").hidden = order.length <= visible;
    $("label-more").textContent = `Show all ${order.length.toLocaleString("en")}`;
  }

  // ---- which run the examples, shot groups and labels are of

  function showRun(place) {
    shown = place;
    for (const select of document.querySelectorAll(".pick select")) select.value = place;
    for (const part of document.querySelectorAll(".of-model")) part.hidden = +part.dataset.model !== place;
    drawSizes(); fillLabels();
  }
  if (several)
    for (const box of document.querySelectorAll(".pick")) {
      const select = make("select", {}, ...D.models.map((m, i) => make("option", { value: i }, m.name)));
      select.addEventListener("change", () => showRun(+select.value));
      box.append(make("label", {}, "Run ", select));
    }

  // ---- theme, copy buttons, and the start

  const themes = ["system", "light", "dark"];
  let theme = "system";
  try { theme = localStorage.getItem("shortlist-theme") || theme; } catch { /* a page from a file may have no storage */ }
  function useTheme() {
    theme === "system" ? delete document.documentElement.dataset.theme : (document.documentElement.dataset.theme = theme);
    $("theme-name").textContent = theme;
  }
  $("theme").hidden = false;
  $("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("shortlist-theme", theme); } catch { /* it lasts as long as the page */ }
    useTheme();
  });
  useTheme();

  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentElement.nextElementSibling;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch { // not allowed here: select it, so that one key copies it
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
  }
  for (const node of document.querySelectorAll("[data-color]")) node.style.background = color(+node.dataset.color);
  for (const id of ["explore", "labels", "training"]) if ($(id)) $(id).hidden = false;
  legend($("legend"), D.legend);
  if (D.charts.training.length) legend($("training-legend"), D.models.map((m, i) => [m.name, i, ""]));
  $("k").addEventListener("input", () => choose(+$("k").value));
  $("k-less").addEventListener("click", () => choose(at - 1));
  $("k-more").addEventListener("click", () => choose(at + 1));
  $("filter").addEventListener("input", () => { visible = STEP; fillLabels(); });
  $("label-more").addEventListener("click", () => { visible = Infinity; fillLabels(); });
  fillAllK(); showRun(0); choose(at); drawTraining();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawAccuracy(); drawSizes(); drawLevels(); drawTraining();
  });
})();
