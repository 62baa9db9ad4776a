"use strict";
// Draws each message of /events: counts since the run began, of which differences make rates.
(() => {
  const KEPT = 480, BACK = 4, EVENTS = 40;
  const make = (name, props = {}, ...children) => {
    const node = Object.assign(document.createElement(name), props);
    node.append(...children);
    return node;
  };
  const at = id => document.getElementById(id);
  const series = index => `var(--series-${index % 8})`;
  // Causes of drops keep their colour in every picture.
  const seen = [];
  const part = name => {
    if (!seen.includes(name)) seen.push(name);
    return `var(--part-${1 + seen.indexOf(name) % 5})`;
  };
  const NEUTRAL = "var(--soft)";
  const short = (value, unit) => {
    for (const [size, prefix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (value >= size) return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
    }
    return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${unit}`;
  };
  const share = value => value === null ? "–" : `${Number((value * 100).toPrecision(3))} %`;
  const sum = values => values.reduce((a, b) => a + b, 0);
  // Counts of the same name in several places, together.
  const together = maps => {
    const all = {};
    for (const [name, count] of maps.flatMap(Object.entries)) all[name] = (all[name] ?? 0) + count;
    return all;
  };
  const causes = message => together([...message.ports, ...message.workers].map(place => place.drops));

  const messages = [], events = [];

  // What happened between two messages, for each second.
  const between = (before, now) => {
    const seconds = now.seconds - before.seconds;
    const rate = (a, b) => seconds > 0 ? Math.max(b - a, 0) / seconds : 0;
    const quotient = ([a, of], [b, now]) => now > of ? (b - a) / (now - of) : null;
    const dropped = causes(before);
    return {
      ports: now.ports.map((port, index) => {
        const old = before.ports[index] ?? port;
        return {
          arrived: rate(old.arrived, port.arrived), bits: rate(old.arrived_bytes, port.arrived_bytes) * 8,
          sent: rate(old.sent, port.sent), sentBits: rate(old.sent_bytes, port.sent_bytes) * 8,
        };
      }),
      workers: now.workers.map((worker, index) => {
        const old = before.workers[index] ?? worker;
        return {
          taken: rate(old.taken, worker.taken), pushed: rate(old.pushed, worker.pushed),
          busy: worker.absent || seconds <= 0 ? null : 1 - Math.min(rate(old.idle_seconds, worker.idle_seconds), 1),
          receive: quotient(old.receive, worker.receive), transmit: quotient(old.transmit, worker.transmit),
          dropped: rate(sum(Object.values(old.drops)), sum(Object.values(worker.drops))),
        };
      }),
      causes: Object.fromEntries(Object.entries(causes(now)).map(([name, count]) => [name, rate(dropped[name] ?? 0, count)])),
    };
  };

  const state = worker => worker.absent ? "absent" : worker.silent_seconds >= 1 ? `silent for ${Math.round(worker.silent_seconds)} s` : "working";

  const answer = (now, rates) => {
    const [arrived, sent] = [sum(rates.ports.map(port => port.arrived)), sum(rates.ports.map(port => port.sent))];
    const dropped = Object.entries(rates.causes).filter(([, rate]) => rate > 0).sort((a, b) => b[1] - a[1]);
    const said = [];
    if (messages.length > 1) {
      said.push(make("b", { textContent: `${short(sent, "frames/s")} go out of ${short(arrived, "frames/s")} that come in. ` }));
      said.push(dropped.length ? `${short(sum(dropped.map(([, rate]) => rate)), "frames/s")} are dropped, most as ${dropped[0][0]}. ` : "Nothing is dropped. ");
    } else said.push("The first rates come with the next message. ");
    now.workers.forEach((worker, index) => {
      if (state(worker) !== "working") said.push(make("strong", { className: "alert", textContent: `Worker ${index} is ${state(worker)}. ` }));
    });
    now.ports.forEach((port, index) => {
      if (port.link && !port.link.up) said.push(make("strong", { className: "alert", textContent: `Port ${index} is down. ` }));
    });
    if (now.set) said.push(`Steering uses the ${now.set} queues. `);
    said.push(`${Math.floor(now.seconds)} s since the run began.`);
    at("answer").replaceChildren(...said);
  };

  // A card of the chain: rows of colour, name, value, share of the bar, remark.
  const card = (title, rows, limited) => {
    const met = limited && rows.some(row => row.share > 0.9);
    const lines = rows.map(row => {
      const bar = make("span");
      bar.style.setProperty("--swatch", row.colour);
      bar.style.width = `${Math.min(row.share ?? 0, 1) * 100}%`;
      const mark = make("i");
      mark.style.left = "100%";
      const swatch = make("i");
      swatch.style.setProperty("--swatch", row.colour);
      return make("div", { className: "row" },
        make("p", { className: "who" }, swatch, row.name, make("b", { textContent: row.value })),
        make("div", { className: "bar" }, bar, ...(limited ? [mark] : [])),
        make("p", { className: "remark", textContent: row.remark ?? "" }));
    });
    return make("li", { className: met ? "met" : "" }, make("h3", {}, title, ...(met ? [make("small", { textContent: "limit met" })] : [])), ...lines);
  };

  const chain = (now, rates) => {
    const most = Math.max(1, ...rates.ports.flatMap(port => [port.arrived, port.sent]));
    const port = (frames, bits) => rates.ports.map((rate, index) => (
      { colour: NEUTRAL, name: `port ${index}`, value: short(rate[frames], "frames/s"), share: rate[frames] / most, remark: short(rate[bits], "bit/s") }));
    const worker = (key, remark) => rates.workers.map((rate, index) => (
      { colour: series(index), name: `worker ${index}`, value: share(rate[key]), share: rate[key] ?? 0, remark: remark(rate, now.workers[index]) }));
    const arrived = sum(rates.ports.map(rate => rate.arrived));
    const drops = Object.entries(rates.causes).filter(([, rate]) => rate > 0).sort((a, b) => b[1] - a[1]).slice(0, 4);
    const dropped = drops.map(([name, rate]) => (
      { colour: part(name), name, value: short(rate, "frames/s"), share: arrived > 0 ? rate / arrived : 1, remark: arrived > 0 ? `${share(rate / arrived)} of arrivals` : "" }));
    at("chain").replaceChildren(
      card("Comes in", port("arrived", "bits")),
      card("Receive rings", worker("receive", () => ""), true),
      card("Workers busy", worker("busy", (rate, worker) => state(worker) === "working" ? `takes ${short(rate.taken, "frames/s")}` : state(worker)), true),
      card("Transmit rings", worker("transmit", () => ""), true),
      card("Drops", dropped.length ? dropped : [{ colour: "transparent", name: "none", value: "0", share: 0 }]),
      card("Goes out", port("sent", "sentBits")));
  };

  // Lines over the last two minutes.
  const plot = (id, names, colours, values, times) => {
    const [width, height, left, bottom, top] = [460, 210, 62, 26, 12];
    const most = Math.max(1, ...values.flat());
    const magnitude = 10 ** Math.floor(Math.log10(most));
    const step = [0.25, 0.5, 1, 2.5, 5].map(factor => factor * magnitude).find(step => most / step <= 4) ?? magnitude * 5;
    const end = Math.ceil(most / step) * step;
    const [first, last] = [times[0], times[times.length - 1]];
    const x = time => left + (width - left - 8) * (last > first ? (time - first) / (last - first) : 1);
    const y = value => height - bottom - (height - bottom - top) * value / end;
    const line = (path, colour, wide) => `<polyline fill="none" stroke="${colour}" stroke-width="${wide}" points="${path.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")}"/>`;
    const word = (x, y, anchor, text) => `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="var(--ink)" font-size="12">${text}</text>`;
    let svg = "";
    for (let tick = 0; tick <= end * 1.001; tick += step) {
      svg += line([[left, y(tick)], [width - 8, y(tick)]], "var(--grid)", 1) + word(left - 6, y(tick) + 4, "end", short(tick, "").trim());
    }
    values.forEach((value, index) => { svg += line(value.map((v, i) => [x(times[i]), y(v)]), colours[index], 2); });
    svg += word(left, height - 6, "start", `${Math.round(last - first)} s ago`) + word(width - 8, height - 6, "end", "now");
    // Nothing in it comes from names: those are in the legend, as text.
    at(id).querySelector("figure").innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${id}">${svg}</svg>`;
    at(id).querySelector(".legend").replaceChildren(...names.map((name, index) => {
      const swatch = make("i");
      swatch.style.setProperty("--swatch", colours[index]);
      return make("li", {}, swatch, name);
    }));
  };

  const history = [];
  const plots = () => {
    const times = history.map(entry => entry.seconds);
    const rates = history.map(entry => entry.rates);
    const total = key => rates.map(rate => sum(rate.ports.map(port => port[key])));
    plot("rates", ["coming in", "going out"], [NEUTRAL, "var(--ink)"], [total("arrived"), total("sent")], times);
    const workers = rates[rates.length - 1].workers.map((_, index) => index);
    plot("taken", workers.map(index => `worker ${index}`), workers.map(series), workers.map(index => rates.map(rate => rate.workers[index]?.taken ?? 0)), times);
    const names = [...new Set(rates.flatMap(rate => Object.keys(rate.causes)))].filter(name => rates.some(rate => rate.causes[name] > 0));
    plot("drops", names, names.map(part), names.map(name => rates.map(rate => rate.causes[name] ?? 0)), times);
  };

  const fill = (id, head, rows) => {
    const cell = (text, index, name) => make(name, { className: index ? "n" : "", textContent: text });
    const top = make("tr", {}, ...head.map((text, index) => cell(text, index, "th")));
    const body = rows.map(row => make("tr", {}, ...row.map((text, index) => cell(text, index, index ? "td" : "th"))));
    at(id).querySelector("table").replaceChildren(make("thead", {}, top), make("tbody", {}, ...body));
    at(id).hidden = rows.length === 0;
  };

  const tables = (before, now, rates) => {
    fill("workers", ["worker", "state", "takes", "sends", "busy", "rx full", "tx full", "drops"], now.workers.map((worker, index) => {
      const rate = rates.workers[index];
      return [String(index), state(worker), short(rate.taken, "frames/s"), short(rate.pushed, "frames/s"), share(rate.busy),
        share(rate.receive), share(rate.transmit), String(sum(Object.values(worker.drops)))];
    }));
    fill("ports", ["port", "link", "in", "out", "in", "out", "drops"], now.ports.map((port, index) => {
      const rate = rates.ports[index];
      const link = port.link ? `${port.link.up ? "up" : "down"}, MTU ${port.link.mtu}` : "–";
      return [String(index), link, short(rate.arrived, "frames/s"), short(rate.sent, "frames/s"), short(rate.bits, "bit/s"),
        short(rate.sentBits, "bit/s"), String(sum(Object.values(port.drops)))];
    }));
    const all = Object.entries(causes(now)).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
    fill("causes", ["cause", "frames", "a second"], all.map(([name, count]) => [name, String(count), short(rates.causes[name] ?? 0, "")]));
    named("tables", "worker", before.workers, now.workers, now.seconds - before.seconds);
    named("stages", "port", before.ports, now.ports, now.seconds - before.seconds);
  };

  // What places count and hold by names of their own: a row for each name, a column for each place.
  const named = (id, word, before, now, seconds) => {
    const names = [...new Set(now.flatMap(place => [...Object.keys(place.gauges), ...Object.keys(place.counters)]))];
    fill(id, ["name", ...now.map((_, index) => `${word} ${index}`)], names.map(name => [name, ...now.map((place, index) => {
      if (name in place.gauges) return String(place.gauges[name]);
      if (!(name in place.counters)) return "–";
      const more = place.counters[name] - (before[index]?.counters[name] ?? place.counters[name]);
      return more > 0 && seconds > 0 ? `${place.counters[name]} (+${short(more / seconds, "").trim()}/s)` : String(place.counters[name]);
    })]));
  };

  const show = message => {
    const last = messages[messages.length - 1];
    if (last && message.seconds < last.seconds) {
      // Another run at the same address.
      messages.length = history.length = events.length = 0;
    }
    if (message.missed) events.unshift(`${message.missed} more at once, too many to tell`);
    for (const event of message.events) events.unshift(`${message.seconds.toFixed(1)} s: ${event}`);
    events.length = Math.min(events.length, EVENTS);
    at("events").querySelector("ol").replaceChildren(...events.map(text => make("li", { textContent: text })));
    if (!last || message.seconds > last.seconds || messages.length === 0) messages.push(message);
    if (messages.length > BACK + 1) messages.shift();
    const rates = between(messages[0], message);
    history.push({ seconds: message.seconds, rates });
    if (history.length > KEPT) history.shift();
    answer(message, rates);
    chain(message, rates);
    plots();
    tables(messages[0], message, rates);
    document.body.dataset.seen = String(Number(document.body.dataset.seen ?? 0) + 1);
  };

  const source = new EventSource("events");
  source.onmessage = event => show(JSON.parse(event.data));
  source.onerror = () => at("answer").replaceChildren(
    make("strong", { className: "alert", textContent: "The run is over, or cannot be reached. " }), "This page shows the last that it said, and tries again.");
})();
