// What a finger really met: top.met, a list of ids. Clicks go no further, so that a page stays as it is.
(() => {
  const record = top.met || (top.met = []);
  const idOf = (event) => {
    const named = event.composedPath().find((n) => n.nodeType === 1 && (n.id || (n.control && n.control.id)));
    return named ? named.id || named.control.id : '';
  };
  document.addEventListener('pointerdown', (event) => record.push(idOf(event)), true);
  document.addEventListener('click', (event) => { event.preventDefault(); event.stopPropagation(); }, true);
  document.addEventListener('mousedown', (event) => event.preventDefault(), true);
})();
