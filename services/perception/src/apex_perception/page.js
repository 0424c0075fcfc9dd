// Returns what a page shows, as JSON: things with a place in the viewport, in document order, each tried by a hit test.
// Reads only. Open shadow roots and frames of the same origin are walked; other frames are listed as opaque. What no
// scrolling can bring to light is left out; what lies more than a screen away is counted.
const ACTS = 'a[href],button,input,select,textarea,summary,[onclick],[contenteditable=""],[contenteditable=true],'
  + '[tabindex]:not([tabindex="-1"])';
const TAGS = { a: 'link', button: 'button', textarea: 'field', select: 'select', img: 'image', canvas: 'canvas',
  video: 'canvas', embed: 'canvas', object: 'canvas', summary: 'button', iframe: 'web', dialog: 'dialog',
  progress: 'progress', meter: 'progress', nav: 'tabs', header: 'bar' };
const INPUTS = { checkbox: 'checkbox', radio: 'radio', range: 'slider', submit: 'button', button: 'button',
  reset: 'button', image: 'button', file: 'button', color: 'button' };
const ARIA = { button: 'button', link: 'link', checkbox: 'checkbox', radio: 'radio', switch: 'switch', tab: 'tab',
  textbox: 'field', searchbox: 'field', spinbutton: 'field', combobox: 'select', slider: 'slider', option: 'item',
  menuitem: 'item', menuitemcheckbox: 'checkbox', menuitemradio: 'radio', treeitem: 'item', img: 'image',
  dialog: 'dialog', alertdialog: 'dialog', progressbar: 'progress', tablist: 'tabs', banner: 'bar', toolbar: 'bar' };
const ACTING = new Set(['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'field', 'select', 'slider', 'item']);
const HOLDING = new Set(['field', 'select', 'slider', 'progress']);
const OPAQUE = new Set(['canvas', 'video', 'embed', 'object']);
const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'option', 'optgroup', 'head', 'datalist', 'source']);
const MOST = 20000, LONGEST = 460;
const WHOLE = { l: -1e6, t: -1e6, r: 1e6, b: 1e6 }, NONE = { l: 0, t: 0, r: 0, b: 0 };
// What is on the glass, in units of the layout, as taps are: less than the layout when a page is wider than its screen.
const glass = visualViewport || { offsetLeft: 0, offsetTop: 0, width: innerWidth, height: innerHeight };
const seen_ = { l: glass.offsetLeft, t: glass.offsetTop, r: glass.offsetLeft + glass.width, b: glass.offsetTop + glass.height };
const nodes = [];
let omitted = 0, left = false;  // whether the last thing was left out, since it is too far

const meet = (a, b) => {
  const m = { l: Math.max(a.l, b.l), t: Math.max(a.t, b.t), r: Math.min(a.r, b.r), b: Math.min(a.b, b.b) };
  return m.r - m.l >= 1 && m.b - m.t >= 1 ? m : null;
};
const squeeze = (text) => {
  const t = (text || '').replace(/\s+/g, ' ').trim();
  return t.length > LONGEST ? `${t.slice(0, LONGEST)}… (+${t.length - LONGEST} characters)` : t;
};
const tagOf = (e) => e.localName || '';
const rootOf = (e) => e.getRootNode();

function kindOf(e, tag) {
  for (const role of (e.getAttribute('role') || '').trim().toLowerCase().split(/\s+/)) if (role in ARIA) return ARIA[role];
  if (tag === 'input') return INPUTS[e.type] || 'field';
  if (e.isContentEditable && !(e.parentElement && e.parentElement.isContentEditable)) return 'field';
  return TAGS[tag] || '';
}

function up(n) {  // the parent as it is painted: through slots, shadow roots and frames
  if (n.assignedSlot) return n.assignedSlot;
  if (n.parentNode) return n.parentNode;
  if (n.host) return n.host;
  try { return n.defaultView ? n.defaultView.frameElement : null; } catch (_) { return null; }
}
function holds(outer, inner) {
  for (let n = inner; n; n = up(n)) if (n === outer) return true;
  return false;
}

function hit(x, y) {  // the innermost element that a finger at this point of the viewport meets
  let scope = document, found = null;
  for (;;) {
    const e = scope.elementFromPoint(x, y);
    if (!e || e === found) return found;
    found = e;
    if (e.shadowRoot && e.shadowRoot.elementFromPoint) { scope = e.shadowRoot; continue; }
    let inner = null;
    try { inner = tagOf(e) === 'iframe' ? e.contentDocument : null; } catch (_) { inner = null; }
    if (!inner) return found;
    const r = e.getBoundingClientRect();
    x -= r.left + e.clientLeft; y -= r.top + e.clientTop; scope = inner;
  }
}

// A point of the visible part that meets the element itself: the middle, else the free point farthest from what covers.
function tapOf(targets, part, own, lenient) {
  const meets = (x, y) => {
    const found = hit(x, y);
    if (!found) return 0;
    if (!targets.some((target) => holds(target, found))) return lenient && holds(found, targets[0]) ? 2 : 0;
    for (let n = found; n && !targets.includes(n); n = up(n)) if (own && n.nodeType === 1 && n.matches(ACTS)) return 1;
    return 2;
  };
  const at = (fx, fy) => [part.l + (part.r - part.l) * fx, part.t + (part.b - part.t) * fy];
  if (meets(...at(0.5, 0.5)) === 2) return at(0.5, 0.5);
  const grid = [0.1, 0.3, 0.5, 0.7, 0.9], free = new Map();
  for (const fx of grid) for (const fy of grid) free.set(`${fx},${fy}`, meets(...at(fx, fy)));
  for (const enough of [2, 1]) {
    let best = null, room = -1;
    for (const fx of grid) for (const fy of grid) {
      if (free.get(`${fx},${fy}`) < enough) continue;
      let near = Math.min(fx, fy, 1 - fx, 1 - fy) + 0.1;
      for (const gx of grid) for (const gy of grid) {
        if (free.get(`${gx},${gy}`) < enough) near = Math.min(near, Math.max(Math.abs(gx - fx), Math.abs(gy - fy)));
      }
      if (near > room + 1e-9) { room = near; best = at(fx, fy); }
    }
    if (best) return best;
  }
  return null;
}

// Labels and other elements whose words are the name of a control: they are not said twice.
const sayings = new Map();
function says(root) {
  if (sayings.has(root)) return sayings.get(root);
  const set = new Set();
  root.querySelectorAll('label').forEach((label) => { if (label.control && label.control.type !== 'hidden') set.add(label); });
  root.querySelectorAll('[aria-labelledby]').forEach((e) => {
    if (ACTING.has(kindOf(e, tagOf(e)))) e.getAttribute('aria-labelledby').split(/\s+/).forEach((id) => set.add(root.getElementById(id)));
  });
  sayings.set(root, set);
  return set;
}

function nameOf(e, tag, kind) {
  const by = (e.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean)
    .map((id) => { const n = rootOf(e).getElementById && rootOf(e).getElementById(id); return n ? n.textContent : ''; });
  const labels = e.labels ? [...e.labels].map((label) => {
    const copy = label.cloneNode(true);
    copy.querySelectorAll('select,textarea,input,button').forEach((n) => n.remove());
    return copy.textContent;
  }) : [];
  const given = by.join(' ').trim() || e.getAttribute('aria-label') || labels.join(' ').trim() || e.getAttribute('alt')
    || (tag === 'input' && kind === 'button' ? e.value || e.getAttribute('title') : '') || e.getAttribute('title') || '';
  if (given || !ACTING.has(kind) || HOLDING.has(kind)) return squeeze(given);
  // An icon with words for readers of the screen alone: nothing of them is seen.
  const seen = (e.innerText || '').trim() && e.getBoundingClientRect().width > 4;
  const drawn = e.querySelector('svg title, [aria-label], img[alt]');
  const small = [...e.children].filter((n) => n.getBoundingClientRect().width <= 2).map((n) => n.textContent).join(' ').trim();
  const words = small || e.textContent.trim() || (drawn ? drawn.getAttribute('aria-label') || drawn.getAttribute('alt')
    || drawn.textContent : '');
  return seen && !small ? '' : squeeze(words);
}

function valueOf(e, tag, kind) {
  if (!HOLDING.has(kind)) return null;
  if (tag === 'input' && e.type === 'password') return e.value ? '•••' : '';
  if (tag === 'select') return squeeze([...e.selectedOptions].map((option) => option.text).join(', '));
  if (kind === 'progress') {
    const now = e.value !== undefined && e.hasAttribute('value') ? e.value / (e.max || 1) : e.getAttribute('aria-valuenow') / 100;
    return Number.isFinite(now) && now > 0 ? `${Math.round(now * 100)} %` : null;
  }
  if (e.value !== undefined) return squeeze(String(e.value));
  return squeeze(e.getAttribute('aria-valuetext') || e.getAttribute('aria-valuenow') || e.innerText);
}

function moreOf(e, style) {
  const x = e.scrollWidth - e.clientWidth, y = e.scrollHeight - e.clientHeight;
  const left = style.direction === 'rtl' ? e.scrollLeft + x : e.scrollLeft;
  const more = [];
  if (y > 4 && e.scrollTop > 1) more.push('above');
  if (y > 4 && e.scrollTop < y - 2) more.push('below');
  if (x > 4 && left > 1) more.push('left');
  if (x > 4 && left < x - 2) more.push('right');
  return more;
}

const rectOf = (r, dx, dy) => ({ l: r.left + dx, t: r.top + dy, r: r.right + dx, b: r.bottom + dy });
function largest(rects, dx, dy) {
  let best = null;
  for (const r of rects) if (!best || r.width * r.height > best.width * best.height) best = r;
  return best && rectOf(best, dx, dy);
}

// Adds a thing that is seen, or could be scrolled to; answers its index, or that of its parent.
function add(parent, box, clip, fields, targets, own, counts) {
  const part = meet(box, clip.seen);
  if (!part) {
    const far = box.b < seen_.t - glass.height || box.t > seen_.b + glass.height
      || box.r < seen_.l - glass.width || box.l > seen_.r + glass.width;
    if (box.r - box.l < 1 || box.b - box.t < 1 || !meet(box, clip.hard)) return parent;
    if (far || nodes.length > MOST) { left = counts; omitted += counts ? 1 : 0; return parent; }
  }
  const shown = part || box;
  const node = { parent, ...fields, box: [shown.l, shown.t, shown.r, shown.b] };
  if (!part) node.hidden = true;
  else if (targets) {
    const tap = tapOf(targets, part, own, !own);
    if (tap) node.tap = tap; else node.covered = true;
  }
  nodes.push(node);
  return nodes.length - 1;
}

// What of an element's children is seen, and what could be: by the flow, by the nearest positioned ancestor, by the screen.
function clipsFor(e, style, base, clips, dx, dy, always) {
  let own = base;
  const clipping = always || ((style.overflowX !== 'visible' || style.overflowY !== 'visible')
    && style.display !== 'inline' && e !== document.body && e !== document.documentElement);
  if (clipping) {
    const r = e.getBoundingClientRect();
    const inner = { l: r.left + dx + e.clientLeft, t: r.top + dy + e.clientTop, r: r.right + dx, b: r.bottom + dy };
    const scrolls = !always && /(auto|scroll)/.test(style.overflowX + style.overflowY);
    const hard = meet(base.hard, inner) || NONE;
    own = { seen: meet(base.seen, inner) || NONE, hard: scrolls && hard !== NONE ? WHOLE : hard };
  }
  const holder = style.transform !== 'none' || style.filter !== 'none' || style.perspective !== 'none'
    || /paint|strict|content|layout/.test(style.contain);
  return { flow: own, abs: style.position !== 'static' || holder ? own : clips.abs, fixed: holder ? own : clips.fixed };
}

function scrollsOf(e, tag, style) {
  if (e === document.documentElement || e === document.body || tag === 'textarea') return false;
  const may = (overflow) => overflow === 'auto' || overflow === 'scroll';
  return (may(style.overflowY) && e.scrollHeight > e.clientHeight + 4) || (may(style.overflowX) && e.scrollWidth > e.clientWidth + 4);
}

function fieldsOf(e, tag, kind, style, acts) {
  const stated = e.getAttribute('aria-checked') || e.getAttribute('aria-pressed');
  const scrolls = scrollsOf(e, tag, style);
  return { kind, name: nameOf(e, tag, kind), value: valueOf(e, tag, kind), acts, scrolls, id: e.id || '', cls: tag,
    hint: squeeze(e.placeholder || e.getAttribute('aria-placeholder') || ''),
    enabled: !e.matches(':disabled') && e.getAttribute('aria-disabled') !== 'true',
    checked: tag === 'input' && ['checkbox', 'radio'].includes(e.type) ? e.checked : stated === null ? null : stated === 'true',
    selected: e.getAttribute('aria-selected') === 'true' || ![null, 'false'].includes(e.getAttribute('aria-current')),
    focused: e === rootOf(e).activeElement && e !== e.ownerDocument.body && tag !== 'iframe',
    password: tag === 'input' && e.type === 'password', more: scrolls ? moreOf(e, style) : [] };
}

function addElement(e, tag, kind, style, parent, dx, dy, base, faint, pointed) {
  const rects = e.getClientRects();
  let box = rects.length > 1 ? largest(rects, dx, dy) : rectOf(e.getBoundingClientRect(), dx, dy);
  const label = ['checkbox', 'radio', 'switch'].includes(kind) && e.labels && e.labels[0];
  const invisible = faint || style.visibility !== 'visible';
  if (label && (invisible || box.r - box.l < 4 || box.b - box.t < 4)) box = rectOf(label.getBoundingClientRect(), dx, dy);
  else if (invisible) return parent;
  // What is neither a control nor around one, and where the pointer becomes a hand, is made to be touched by a script.
  const byPointer = style.cursor === 'pointer' && !pointed && !kind && tag !== 'label' && tag !== 'body' && !e.querySelector(ACTS);
  const acts = ACTING.has(kind) || byPointer || (e.matches(ACTS) && !['dialog', 'progress', 'image'].includes(kind));
  const fields = fieldsOf(e, tag, kind, style, acts);
  const tried = acts || fields.name || fields.scrolls || kind === 'canvas' || kind === 'web' || kind === 'dialog';
  return add(parent, box, base, fields, tried ? [e, ...(e.labels || [])] : null, acts, acts);
}

function walk(e, parent, dx, dy, clips, faint, pointed) {
  if (e.nodeType !== Node.ELEMENT_NODE) return;
  const tag = tagOf(e);
  if (SKIPPED.has(tag)) return;
  const style = e.ownerDocument.defaultView.getComputedStyle(e);
  if (style.display === 'none') return;
  if (style.display !== 'contents' && e.checkVisibility && !e.checkVisibility()) return;
  if (tag === 'svg') {
    const name = squeeze(e.getAttribute('aria-label'));
    if (name && !faint) add(parent, rectOf(e.getBoundingClientRect(), dx, dy), clips.flow, { kind: 'image', name, cls: tag }, [e], false, false);
    return;
  }
  const base = style.position === 'fixed' ? clips.fixed : style.position === 'absolute' ? clips.abs : clips.flow;
  const sealed = tag.includes('-') && !e.shadowRoot && !e.childNodes.length;  // a closed shadow root, or nothing
  const kind = kindOf(e, tag) || (sealed ? 'web' : '');
  faint = faint || style.opacity === '0';
  left = false;
  const index = style.display === 'contents' ? parent : addElement(e, tag, kind, style, parent, dx, dy, base, faint, pointed);
  if (left) return;
  if (tag === 'iframe') return walkFrame(e, index, dx, dy, clipsFor(e, style, base, clips, dx, dy, true), faint);
  if (OPAQUE.has(tag) || tag === 'select' || (HOLDING.has(kind) && kind !== 'select')) return;
  const inner = clipsFor(e, style, base, clips, dx, dy, false);
  const given = tag === 'slot' ? e.assignedNodes() : [];
  const children = given.length ? given : [...(e.shadowRoot || e).childNodes];
  const quiet = faint || style.visibility !== 'visible' || says(rootOf(e)).has(e);
  for (const child of children) {
    if (child.nodeType !== Node.TEXT_NODE) walk(child, index, dx, dy, inner, faint, pointed || style.cursor === 'pointer');
    else if (!quiet) addText(child, index, dx, dy, inner.flow);
  }
}

function addText(n, parent, dx, dy, clip) {
  const text = squeeze(n.textContent);
  if (!text || nodes.length > MOST) return;
  const range = n.ownerDocument.createRange();
  range.selectNodeContents(n);
  const box = rectOf(range.getBoundingClientRect(), dx, dy);
  if ((box.r - box.l) * (box.b - box.t) > 4) add(parent, box, clip, { kind: 'text', text }, [n.parentElement || up(n)], false, false);
}

function walkFrame(e, index, dx, dy, clips, faint) {
  let inner = null;
  try { inner = e.contentDocument; } catch (_) { inner = null; }
  if (!inner || !inner.body || faint) return;
  const r = e.getBoundingClientRect();
  const root = inner.scrollingElement || inner.documentElement;
  if (nodes[index] && nodes[index].cls === 'iframe' && root.scrollHeight > root.clientHeight + 4) {
    nodes[index].scrolls = true;
    nodes[index].more = moreOf(root, inner.defaultView.getComputedStyle(root));
  }
  const own = { seen: clips.flow.seen, hard: clips.flow.hard === NONE ? NONE : WHOLE };
  walk(inner.body, index, dx + r.left + e.clientLeft, dy + r.top + e.clientTop, { flow: own, abs: own, fixed: own }, false, false);
}

// Boxes that hold nothing and do nothing say nothing.
function pruned() {
  const kept = nodes.map((n) => Boolean(n.kind || n.name || n.acts || n.scrolls));
  for (let i = nodes.length - 1; i >= 0; i -= 1) if (kept[i] && nodes[i].parent >= 0) kept[nodes[i].parent] = true;
  const place = [];
  const list = [];
  nodes.forEach((n, i) => {
    place.push(kept[i] ? list.length : -1);
    if (kept[i]) list.push({ ...n, parent: n.parent >= 0 ? place[n.parent] : -1 });
  });
  return list;
}

function onGlass(node) {
  const x = (at) => at - glass.offsetLeft, y = (at) => at - glass.offsetTop;
  node.box = [x(node.box[0]), y(node.box[1]), x(node.box[2]), y(node.box[3])];
  if (node.tap) node.tap = [x(node.tap[0]), y(node.tap[1])];
  return node;
}

const page = document.scrollingElement || document.documentElement;
let whole = -1;
if (page.scrollHeight > glass.height + 4 || page.scrollWidth > glass.width + 4) {
  const x = page.scrollWidth - glass.width, y = page.scrollHeight - glass.height, more = [];
  const left = scrollX + glass.offsetLeft + (getComputedStyle(page).direction === 'rtl' ? x : 0), above = scrollY + glass.offsetTop;
  if (above > 1) more.push('above');
  if (above < y - 2) more.push('below');
  if (left > 1) more.push('left');
  if (left < x - 2) more.push('right');
  const tap = [seen_.l + glass.width / 2, seen_.t + glass.height / 2];
  nodes.push({ parent: -1, kind: 'scroll', box: [seen_.l, seen_.t, seen_.r, seen_.b], scrolls: true, more, tap });
  whole = 0;
}
const all = { seen: seen_, hard: WHOLE };
const fixed = { seen: seen_, hard: { l: 0, t: 0, r: innerWidth, b: innerHeight } };
if (document.body) walk(document.body, whole, 0, 0, { flow: all, abs: all, fixed }, false, false);
return JSON.stringify({ apex: 'web', title: document.title, host: location.host,
  width: Math.round(glass.width), height: Math.round(glass.height), ratio: devicePixelRatio,
  omitted, nodes: pruned().map(onGlass) });
