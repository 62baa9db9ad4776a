(() => {
  const wrong = [];
  const say = (what, node, more) => {
    const near = (node.textContent || node.parentElement.textContent || "").trim().replace(/\s+/g, " ").slice(0, 50);
    wrong.push(`${what}: "${near}"${more ? ` and "${more.trim().slice(0, 50)}"` : ""}`);
  };
  const shown = new Map();
  const seen = node => {
    if (!shown.has(node)) shown.set(node, node.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true }));
    return shown.get(node);
  };
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) {
    const wide = [...document.querySelectorAll("body *")].find(node => node.getBoundingClientRect().right > width + 1 && seen(node)
      && !node.closest(".scroll *"));
    say(`wider than the page (${document.documentElement.scrollWidth} of ${width})`, wide || document.body);
  }
  // Looked up once for each element: what scrolls it, and what clips it.
  const known = new Map();
  const around = node => {
    if (!node || node === document.body) return { scroller: null, clips: [] };
    if (!known.has(node)) {
      const { scroller, clips } = around(node.parentElement);
      const style = getComputedStyle(node);
      const hides = style.overflowX === "hidden" || style.overflowY === "hidden";
      known.set(node, {
        scroller: ["auto", "scroll"].includes(style.overflowX) ? node : scroller,
        clips: hides ? [...clips, node] : clips,
      });
    }
    return known.get(node);
  };
  const paper = matchMedia("print").matches;
  // Each line of each text, in page coordinates.
  const lines = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    const parent = text.parentElement;
    if (!text.data.trim() || ["SCRIPT", "STYLE", "OPTION"].includes(parent.tagName) || !seen(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { scroller, clips } = around(parent);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      // What a reader scrolls to is not clipped; paper does not scroll.
      const clip = (paper || !scroller) && (box.left < -1 || box.right > width + 1);
      if (clip) say("clipped by the page's edge", parent);
      lines.push({ box, parent, text: text.data, scroller });
    }
    for (const it of clips) {
      const outer = it.getBoundingClientRect(), inner = range.getBoundingClientRect();
      if (inner.right > outer.right + 1 || inner.bottom > outer.bottom + 2) say("clipped", parent);
    }
    const svg = parent.closest("svg");
    if (svg) {
      const outer = svg.getBoundingClientRect(), inner = range.getBoundingClientRect();
      if (inner.right > outer.right + 2 || inner.left < outer.left - 2 || inner.top < outer.top - 2 || inner.bottom > outer.bottom + 2) {
        say("clipped by its plot", parent);
      }
    }
  }
  // Texts on top of each other; columns that stay while a table scrolls lie over others by intent.
  lines.sort((a, b) => a.box.top - b.box.top);
  for (let i = 0; i < lines.length; i += 1) {
    for (let j = i + 1; j < lines.length && lines[j].box.top < lines[i].box.bottom - 3; j += 1) {
      const a = lines[i], b = lines[j];
      if (a.scroller !== b.scroller || (a.scroller && !paper)) continue;
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      const least = Math.min(a.box.height, b.box.height);
      if (across > 2 && down > least * 0.35) say("overlap", a.parent, b.text);
    }
  }
  return [...new Set(wrong)].slice(0, 12);
})()
