"use strict";
// Sorts, filters and pivots the table of points. All that it shows is in the page already.
(() => {
  const MANY = 25;
  const table = document.querySelector(".points .many table");
  if (!table) return;
  const make = (name, props = {}, ...children) => {
    const node = Object.assign(document.createElement(name), props);
    node.append(...children);
    return node;
  };
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const names = heads.map(head => head.title || head.textContent.trim());
  const labels = heads.map(head => head.textContent.trim());
  const isMetric = heads.map((_, column) => rows.some(row => row.cells[column].dataset.v !== undefined));
  const text = (row, column) => row.cells[column].textContent.trim();
  const value = (row, column) => {
    const cell = row.cells[column];
    const number = Number(cell.dataset.v ?? (cell.textContent.trim() || NaN));
    return Number.isNaN(number) ? null : number;
  };
  const compare = column => (a, b) => {
    const [x, y] = [value(a, column), value(b, column)];
    if (x === null || y === null) return (x === null) - (y === null) || text(a, column).localeCompare(text(b, column));
    return x - y;
  };
  const keys = names.map((_, column) => column).filter(column => !isMetric[column]);
  const distinct = column => [...new Map([...rows].sort(compare(column)).map(row => [text(row, column), row])).keys()];
  const chosen = new Map();
  let all = false;

  // Filters above the table, and what they leave.
  const count = make("output");
  const more = make("button", { type: "button", onclick: () => { all = !all; show(); } });
  const tools = make("div", { className: "tools" });
  for (const column of keys) {
    const values = distinct(column);
    if (values.length < 2 || values.length > 60) continue;
    const select = make("select", {}, make("option", { value: "", textContent: "all" }),
      ...values.map(value => make("option", { value, textContent: value })));
    select.onchange = () => { chosen.set(column, select.value); show(); };
    tools.append(make("label", {}, names[column], select));
  }
  tools.append(count, more);
  table.closest(".scroll").before(tools);
  const left = () => rows.filter(row => [...chosen].every(([column, value]) => !value || text(row, column) === value));
  const show = () => {
    const kept = new Set(left());
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = !kept.has(row) || (!all && shown >= MANY);
      shown += !row.hidden;
    }
    count.value = `${shown} of ${kept.size === rows.length ? "" : `${kept.size} chosen of `}${rows.length} points`;
    more.textContent = all ? `Show ${MANY}` : "Show all";
    more.hidden = kept.size <= MANY;
    pivot();
  };

  // Heads that sort.
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    head.setAttribute("aria-sort", "none");
    const sort = () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach(other => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = compare(column);
      table.tBodies[0].append(...[...rows].sort((a, b) => up ? order(a, b) : order(b, a)));
      show();
    };
    head.onclick = sort;
    head.onkeydown = event => { if (event.key === "Enter") sort(); };
  });

  // The map: two keys and a metric of the reader's choice.
  const section = document.querySelector("section.heat");
  const pick = (label, columns, first) => {
    const select = make("select", {}, ...columns.map(column => make("option", { value: column, textContent: labels[column] })));
    select.value = first;
    select.onchange = () => { touched = true; pivot(); };
    return [make("label", {}, label, select), select];
  };
  let touched = false;
  let pivot = () => {};
  if (section) {
    const [title, note, panels] = [section.querySelector("h2"), section.querySelector(".note"), section.querySelector(".panels")];
    const numeric = keys.filter(column => distinct(column).length > 1);
    const head = section.querySelector(".heatmap th");
    const [down, across] = [head.firstChild.textContent.trim(), head.querySelector("small").textContent.replace("→", "").trim()];
    const metrics = names.map((_, column) => column).filter(column => isMetric[column]);
    const metricKey = metrics.find(column => ["no_drop_gbps", "bandwidth_gbps"].includes(names[column])) ??
      metrics.find(column => names[column] === "throughput_gbps") ?? metrics[0];
    const [rowLabel, rowKey] = pick("rows", numeric, names.indexOf(down));
    const [columnLabel, columnKey] = pick("columns", numeric, names.indexOf(across));
    const [metricLabel, metric] = pick("value", metrics, metricKey);
    const how = make("select", {}, ...["median", "least", "most"].map(value => make("option", { value, textContent: value })));
    how.onchange = () => { touched = true; pivot(); };
    note.after(make("div", { className: "tools" }, rowLabel, columnLabel, metricLabel, make("label", {}, "of several", how)));
    const reduce = values => {
      values.sort((a, b) => a - b);
      const middle = values.length / 2;
      if (how.value === "least") return values[0];
      if (how.value === "most") return values[values.length - 1];
      return values.length % 2 ? values[Math.floor(middle)] : (values[middle - 1] + values[middle]) / 2;
    };
    const shown = value => value.toLocaleString("en", { maximumSignificantDigits: 4, useGrouping: false });
    pivot = () => {
      if (!touched && [...chosen.values()].every(value => !value)) return;
      touched = true;
      const [r, c, m] = [Number(rowKey.value), Number(columnKey.value), Number(metric.value)];
      const kept = left();
      const groups = r === 0 || c === 0 ? [""] : distinct(0).filter(name => kept.some(row => text(row, 0) === name));
      const maps = groups.map(group => {
        const cells = new Map();
        for (const row of kept) {
          const number = value(row, m);
          if ((group && text(row, 0) !== group) || number === null) continue;
          const key = JSON.stringify([text(row, r), text(row, c)]);
          cells.set(key, [...(cells.get(key) ?? []), number]);
        }
        return [group, new Map([...cells].map(([key, values]) => [key, reduce(values)]))];
      });
      const values = maps.flatMap(([, cells]) => [...cells.values()]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const unit = heads[m].querySelector("small")?.textContent ?? "";
      const label = heads[m].firstChild.textContent.trim();
      title.textContent = `${label[0].toUpperCase()}${label.slice(1)} by ${names[r]} and ${names[c]}`;
      note.textContent = values.length ? `${unit}, from ${shown(low)} (pale) to ${shown(high)} (dark). ` +
        `Each cell is the ${how.value} over the points chosen.` : "No point is left.";
      panels.replaceChildren(...maps.map(([group, cells]) => {
        const columns = distinct(c).filter(name => [...cells.keys()].some(key => JSON.parse(key)[1] === name));
        const lines = distinct(r).filter(name => [...cells.keys()].some(key => JSON.parse(key)[0] === name));
        const top = make("tr", {}, make("th", {}, `${names[r]} `, make("small", { textContent: `${names[c]} →` })),
          ...columns.map(name => make("th", { className: "n", textContent: name })));
        const body = lines.map(line => make("tr", {}, make("th", { scope: "row", textContent: line }), ...columns.map(column => {
          const number = cells.get(JSON.stringify([line, column]));
          if (number === undefined) return make("td");
          const heat = high > low ? (number - low) / (high - low) : 0;
          const cell = make("td", { className: heat > 0.55 ? "n hot" : "n", textContent: shown(number) });
          cell.style.setProperty("--heat", `${Math.round(heat * 100)}%`);
          return cell;
        })));
        const map = make("table", { className: "heatmap" }, make("thead", {}, top), make("tbody", {}, ...body));
        return make("figure", {}, make("figcaption", { textContent: group }), make("div", { className: "scroll" }, map));
      }));
    };
  }
  show();
})();
