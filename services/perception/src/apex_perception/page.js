// Returns what a page shows, as JSON: visible things with a place in the viewport, in document order.
// Reads only; frames of another origin are listed as opaque.
const nodes = [];
const ACTING = 'a[href],button,input,select,textarea,summary,label[for],[role],[onclick],[tabindex],[contenteditable]';
const ROLES = { a: 'link', button: 'button', textarea: 'field', select: 'select', img: 'image', canvas: 'canvas',
  video: 'canvas', summary: 'button', iframe: 'web', dialog: 'dialog' };
const INPUTS = { checkbox: 'checkbox', radio: 'radio', range: 'slider', submit: 'button', button: 'button',
  reset: 'button', image: 'button' };
const ARIA = { button: 'button', link: 'link', checkbox: 'checkbox', radio: 'radio', switch: 'switch', tab: 'tab',
  textbox: 'field', searchbox: 'field', combobox: 'select', slider: 'slider', menuitem: 'item', option: 'item',
  listitem: '', img: 'image', dialog: 'dialog', alertdialog: 'dialog', progressbar: 'progress' };
function kindOf(e, tag) {
  const aria = (e.getAttribute('role') || '').trim();
  if (aria in ARIA) return ARIA[aria];
  if (tag === 'input') return INPUTS[e.type] || 'field';
  if (e.isContentEditable && !(e.parentElement && e.parentElement.isContentEditable)) return 'field';
  return ROLES[tag] || (tag === 'dialog' ? 'dialog' : '');
}
function add(parent, fields) { nodes.push({ parent, ...fields }); return nodes.length - 1; }
function walk(e, parent, dx, dy) {
  if (nodes.length > 20000) return;
  if (e.nodeType === Node.TEXT_NODE) {
    const text = e.textContent.replace(/\s+/g, ' ').trim();
    if (!text) return;
    const range = e.ownerDocument.createRange();
    range.selectNodeContents(e);
    const r = range.getBoundingClientRect();
    if (r.width && r.height) add(parent, { kind: 'text', text, box: [r.left + dx, r.top + dy, r.right + dx, r.bottom + dy] });
    return;
  }
  if (e.nodeType !== Node.ELEMENT_NODE) return;
  const tag = e.localName;
  if (['script', 'style', 'noscript', 'template', 'option'].includes(tag)) return;
  const view = e.ownerDocument.defaultView;
  const style = view.getComputedStyle(e);
  if (style.display === 'none') return;
  let index = parent;
  const hidden = style.visibility === 'hidden' || style.opacity === '0';
  if (style.display !== 'contents' && !hidden) {
    const r = e.getBoundingClientRect();
    const kind = kindOf(e, tag);
    const scrolls = /(auto|scroll)/.test(style.overflowY) && e.scrollHeight > e.clientHeight + 4;
    const acts = e.matches(ACTING) && (!e.hasAttribute('role') || kind !== '') && e.tabIndex !== -2
      && tag !== 'label' && !['image', 'dialog', 'progress'].includes(kind) || style.cursor === 'pointer' && e.childElementCount === 0;
    const field = kind === 'field' || kind === 'select' || kind === 'slider';
    const password = tag === 'input' && e.type === 'password';
    const label = e.getAttribute('aria-label') || (e.labels && e.labels[0] && e.labels[0].innerText)
      || e.getAttribute('alt') || e.getAttribute('title') || (kind === 'button' && tag === 'input' ? e.value : '') || '';
    const value = !field ? null : password ? (e.value ? '•••' : '') : tag === 'select'
      ? (e.selectedOptions[0] ? e.selectedOptions[0].text : '') : (e.value === undefined ? e.innerText : e.value);
    index = add(parent, { kind, name: label.replace(/\s+/g, ' ').trim(), value, hint: e.placeholder || '',
      id: e.id || '', cls: tag, box: [r.left + dx, r.top + dy, r.right + dx, r.bottom + dy],
      acts: acts && !e.matches(':disabled') || acts && kind !== '', scrolls, enabled: !e.matches(':disabled'),
      checked: 'checked' in e && ['checkbox', 'radio'].includes(e.type) ? e.checked
        : e.hasAttribute('aria-checked') ? e.getAttribute('aria-checked') === 'true' : null,
      selected: e.getAttribute('aria-selected') === 'true' || e.hasAttribute('aria-current'),
      focused: e === e.getRootNode().activeElement, password, clip: style.overflow !== 'visible',
      top: style.position === 'fixed' || style.position === 'sticky' || tag === 'dialog' });
    if (tag === 'iframe') {
      let inner = null;
      try { inner = e.contentDocument; } catch (_) { inner = null; }
      if (inner && inner.body) walk(inner.body, index, dx + r.left + e.clientLeft, dy + r.top + e.clientTop);
      return;
    }
    if (field || tag === 'canvas' || tag === 'video') return;
  }
  for (const child of (e.shadowRoot || e).childNodes) walk(child, index, dx, dy);
  if (e.shadowRoot) for (const child of e.childNodes) if (child.assignedSlot) walk(child, index, dx, dy);
}
walk(document.body, -1, 0, 0);
return JSON.stringify({ apex: 'web', title: document.title, host: location.host, width: innerWidth, height: innerHeight,
  ratio: devicePixelRatio, nodes });
