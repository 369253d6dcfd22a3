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

  // ---- charts: an svg in the width of its box, axes, and what the caller adds

  function chart(box, height, { x, y, xTicks, yTicks, xName, yName, xLabel = String, yLabel = String, description }) {
    const width = Math.max(240, Math.round(box.clientWidth || 320));
    const edge = { left: 50, right: 14, top: 12, bottom: xName ? 44 : 26 };
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description });
    const X = (v) => edge.left + x(v) * (width - edge.left - edge.right);
    const Y = (v) => height - edge.bottom - y(v) * (height - edge.top - edge.bottom);
    for (const tick of yTicks) {
      svg.append(draw("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: Y(tick), y2: Y(tick) }));
      svg.append(draw("text", { x: edge.left - 7, y: Y(tick) + 4, "text-anchor": "end" }, yLabel(tick)));
    }
    svg.append(draw("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom }));
    let last = -1e9;
    for (const tick of xTicks) {
      const label = xLabel(tick), room = 4.2 * label.length + 6;
      if (X(tick) - room < last) continue; // no room for it
      last = X(tick) + room;
      svg.append(draw("text", { x: X(tick), y: height - edge.bottom + 17, "text-anchor": "middle" }, label));
    }
    if (xName) svg.append(draw("text", { x: edge.left + (width - edge.left - edge.right) / 2, y: height - 6, "text-anchor": "middle" }, xName));
    if (yName) svg.append(draw("text", { x: 12, y: edge.top + (height - edge.top - edge.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${edge.top + (height - edge.top - edge.bottom) / 2})` }, yName));
    box.replaceChildren(svg);
    return { svg, X, Y, width, edge, height };
  }
  function path(xs, ys, X, Y) {
    let d = "", pen = false;
    xs.forEach((x, i) => {
      if (x == null || ys[i] == null) { pen = false; return; }
      d += `${pen ? "L" : "M"}${X(x).toFixed(1)} ${Y(ys[i]).toFixed(1)}`;
      pen = true;
    });
    return d;
  }
  function niceTicks(low, high, count = 5) {
    const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(+(i * step).toPrecision(12));
    return ticks;
  }
  function legend(box, entries) {
    box.replaceChildren(...entries.map(([name, stroke, kind]) => {
      const line = draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
      line.append(draw("line", { x1: 1, x2: 25, y1: 5, y2: 5, class: `line ${kind}`, style: `stroke:${stroke}` }));
      return make("span", {}, line, name);
    }));
  }

  // ---- accuracy against set size

  function drawAccuracy() {
    const all = D.models.flatMap((m) => [...m.average.accuracy, ...m.top.accuracy]).filter((v) => v != null);
    const sizes = D.models.flatMap((m) => m.average.size).filter((v) => v > 0);
    if (!all.length) return;
    const first = Math.min(1, ...sizes), last = Math.max(D.grid[D.grid.length - 1], ...sizes), low = Math.floor(Math.min(...all) * 10) / 10;
    const log = (v) => (last > first ? Math.log(v / first) / Math.log(last / first) : 0.5);
    const c = chart($("chart-accuracy"), several ? 330 : 410, {
      x: log, y: (v) => (v - low) / (1 - low || 1),
      xTicks: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100].filter((t) => t >= first && t <= last), yTicks: niceTicks(low, 1),
      yLabel: (v) => percent(v, 0), xName: "mean set size (log scale)",
      description: `${D.words.accuracy} against mean set size, from ${D.grid[0]} to ${D.grid[D.grid.length - 1]} labels; the numbers are in the tables of this section.`,
    });
    const here = c.X(D.grid[at]);
    c.svg.append(draw("line", { class: "here", x1: here, x2: here, y1: c.edge.top, y2: c.height - c.edge.bottom }));
    D.models.forEach((m, i) => {
      const a = m.average, spread = a.accuracy_spread;
      if (spread) {
        const up = a.accuracy.map((v, j) => Math.min(1, v + spread[j])), down = a.accuracy.map((v, j) => Math.max(low, v - spread[j]));
        const d = path(a.size, up, c.X, c.Y) + path([...a.size].reverse(), [...down].reverse(), c.X, c.Y).replace("M", "L") + "Z";
        c.svg.append(draw("path", { class: "band", d, style: `fill:${color(i)}` }));
      }
      c.svg.append(draw("path", { class: "line top", d: path(m.top.size, m.top.accuracy, c.X, c.Y), style: `stroke:${color(i)}` }));
      c.svg.append(draw("path", { class: "line", d: path(a.size, a.accuracy, c.X, c.Y), style: `stroke:${color(i)}` }));
    });
    D.models.forEach((m, i) => {
      for (const [rule, side] of [[m.top, 6.5], [m.average, 0]]) {
        if (rule.accuracy[at] == null) continue;
        const x = c.X(rule.size[at]), y = c.Y(rule.accuracy[at]);
        c.svg.append(side
          ? draw("rect", { class: "dot", x: x - 4, y: y - 4, width: 8, height: 8, style: `fill:${color(i)}` })
          : draw("circle", { class: "dot", cx: x, cy: y, r: 5.5, style: `fill:${color(i)}` }));
      }
    });
    const move = (event) => {
      const box = c.svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * c.width;
      const near = D.grid.map((k) => Math.abs(c.X(k) - x));
      choose(near.indexOf(Math.min(...near)));
    };
    c.svg.addEventListener("pointerdown", (event) => {
      move(event);
      // the chart is drawn anew while K moves: listen on the window until the button is released
      const drag = (e) => { if (e.buttons) move(e); };
      window.addEventListener("pointermove", drag);
      window.addEventListener("pointerup", () => window.removeEventListener("pointermove", drag), { once: true });
    });
  }

  // ---- set sizes

  function histogram(box, shares, k, tint, name) {
    // up to the last size that at least one example in 500 has, the rest together
    let end = Math.min(D.labels.names.length, Math.max(4, Math.ceil(k) + 1));
    for (let s = end + 1; s < shares.length; s++) if (shares[s] >= 0.002) end = s;
    const rest = shares.slice(end + 1).reduce((a, b) => a + b, 0);
    const bars = shares.slice(0, end + 1);
    while (bars.length <= end) bars.push(0);
    if (rest > 0) bars.push(rest);
    const most = Math.max(...bars, 0.05), n = bars.length;
    const label = (s) => (rest > 0 && s === n - 1 ? `${s}+` : String(s));
    const c = chart(box, 190, {
      x: (v) => (v + 0.5) / n, y: (v) => v / (1.12 * most), xTicks: bars.map((_, s) => s), yTicks: niceTicks(0, most, 3),
      xLabel: label, yLabel: (v) => percent(v, 0),
      description: `${name}: ${bars.map((b, s) => [b, s]).filter(([b]) => b >= 0.005).map(([b, s]) => `${percent(b, 0)} of the sets have ${label(s)} labels`).join(", ")}.`,
    });
    const wide = Math.max(2, Math.min(44, (c.width - c.edge.left - c.edge.right) / n * 0.78));
    bars.forEach((share, s) => {
      if (share <= 0) return;
      const bar = draw("rect", { x: c.X(s) - wide / 2, width: wide, y: c.Y(share), height: Math.max(1, c.Y(0) - c.Y(share)), rx: Math.min(3, wide / 4), style: `fill:${tint}` });
      bar.append(draw("title", {}, `${label(s)} labels: ${percent(share)}`));
      c.svg.append(bar);
    });
    c.svg.append(draw("line", { class: "mean", x1: c.X(k), x2: c.X(k), y1: c.edge.top, y2: c.Y(0) }));
    bars.forEach((share, s) => {
      if (n <= 12 && share >= 0.01) c.svg.append(draw("text", { class: "value", x: c.X(s), y: Math.max(10, c.Y(share) - 3), "text-anchor": "middle" }, percent(share, 0).replace("\u202f%", "")));
    });
  }
  function panels(box, parts) {
    if (box.children.length !== parts.length)
      box.replaceChildren(...parts.map(() => make("div", {}, make("h4"), make("div"))));
    parts.forEach(([title, detail, shares, tint], i) => {
      const [heading, body] = box.children[i].children;
      heading.replaceChildren(title + " ", make("small", {}, detail));
      histogram(body, shares, D.grid[at], tint, title || "AverageK sets");
    });
  }
  function drawSizes() {
    panels($("chart-sizes"), D.models.map((m, i) => [several ? m.name : "", `mean ${decimals(m.average.size[at])}`, m.average.histogram[at], color(i)]));
    if (D.shots.length) {
      const a = D.models[shown].average;
      panels($("chart-shots"), D.shots.map((shot, g) => [
        shot.name, `${D.words.accuracy.toLowerCase()} ${percent(a.shot_accuracy[at][g])}, mean size ${decimals(a.shot_size[at][g])}`, a.shot_histogram[at][g], color(shown),
      ]));
    }
  }

  // ---- true ambiguity

  function drawLevels() {
    if (!D.levels.length) return;
    const places = D.levels.map((l) => parseFloat(l.name)), end = Math.max(...places), begin = Math.min(...places);
    const sizes = D.models.flatMap((m) => m.average.level_size[at]);
    const most = Math.max(end, D.grid[at], ...sizes) * 1.08, room = (end - begin || 1) * 0.08;
    const c = chart($("chart-levels"), 300, {
      x: (v) => (v - begin + room) / (end - begin + 2 * room), y: (v) => v / most, xTicks: places, yTicks: niceTicks(0, most),
      xLabel: (v) => D.levels[places.indexOf(v)].name, xName: "right labels of the example", yName: "mean set size",
      description: "Mean set size by the number of right labels; the numbers are in the table beside.",
    });
    c.svg.append(draw("line", { class: "ideal", x1: c.X(begin), y1: c.Y(begin), x2: c.X(end), y2: c.Y(end) }));
    c.svg.append(draw("path", { class: "line top", d: path(places, places.map(() => D.grid[at]), c.X, c.Y), style: "stroke:var(--soft)" }));
    c.svg.append(draw("text", { x: c.X(end), y: c.Y(D.grid[at]) + 16, "text-anchor": "end" }, "TopK"));
    D.models.forEach((m, i) => {
      const level = m.average.level_size[at];
      c.svg.append(draw("path", { class: "line", d: path(places, level, c.X, c.Y), style: `stroke:${color(i)}` }));
      level.forEach((v, j) => { if (v != null) c.svg.append(draw("circle", { class: "dot", cx: c.X(places[j]), cy: c.Y(v), r: 5, style: `fill:${color(i)}` })); });
    });
  }

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

  // ---- training curves

  function drawTraining() {
    const box = $("chart-training");
    if (!box) return;
    legend($("training-legend"), D.models.map((m, i) => [m.name, color(i), ""]));
    if (!box.children.length)
      box.append(...D.training.map((t) => make("div", { class: "card" }, make("h4", {}, t.name.replaceAll("_", " ")), make("div"))));
    D.training.forEach((t, i) => {
      const xs = t.lines.flatMap((l) => l.points.map((p) => p[0])), ys = t.lines.flatMap((l) => l.points.map((p) => p[1]));
      const [left, right] = [Math.min(...xs), Math.max(...xs)];
      const span = Math.max(...ys) - Math.min(...ys) || Math.abs(ys[0]) || 1;
      const [low, high] = [Math.min(...ys) - 0.05 * span, Math.max(...ys) + 0.05 * span];
      const last = t.lines.map((l) => `${D.models[l.model].name} ${l.points[l.points.length - 1][1]}`).join(", ");
      const c = chart(box.children[i].children[1], 200, {
        x: (v) => (right > left ? (v - left) / (right - left) : 0.5), y: (v) => (v - low) / (high - low),
        xTicks: niceTicks(left, right, 5).filter(Number.isInteger), yTicks: niceTicks(low, high, 4), xName: "epoch", yLabel: (v) => String(+v.toPrecision(4)),
        description: `${t.name} by epoch; at the end: ${last}.`,
      });
      for (const l of t.lines) {
        c.svg.append(draw("path", { class: "line thin", d: path(l.points.map((p) => p[0]), l.points.map((p) => p[1]), c.X, c.Y), style: `stroke:${color(l.model)}` }));
        if (l.points.length === 1) c.svg.append(draw("circle", { class: "dot", cx: c.X(l.points[0][0]), cy: c.Y(l.points[0][1]), r: 4, style: `fill:${color(l.model)}` }));
      }
    });
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
  legend($("legend"), D.models.flatMap((m, i) => [[called(m, "AverageK"), color(i), ""], [called(m, "TopK"), color(i), "top"]]));
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
