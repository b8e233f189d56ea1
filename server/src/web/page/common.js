// What both pages share: elements, rows that change, and the stream of events.

/** Makes an element; strings become text, never markup. */
function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

const byId = id => document.getElementById(id);

/** The text of a number that may be unknown. */
const numberText = value => value === null || value === undefined ? '–' : Number(value).toLocaleString('en-US');

function badge(kind, sign, text) {
  return h('span', {class: `badge ${kind}`}, sign ? h('span', {'aria-hidden': 'true'}, sign) : null, text);
}

/** Sets a text only where it differs, so that screen readers hear of changes and nothing else. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Keeps the children of `parent` as one element for each [key, value], in this order; an element is made anew only
 * when its value is another.
 */
function keyed(parent, entries, make) {
  const known = parent.known || (parent.known = new Map());
  const wanted = new Map(entries);
  for (const [key, old] of known) {
    if (!wanted.has(key)) { old.element.remove(); known.delete(key); }
  }
  let before = null;
  for (const [key, value] of [...wanted].reverse()) {
    const text = JSON.stringify(value);
    let item = known.get(key);
    if (!item || item.text !== text) {
      const element = make(value, key);
      if (item) {
        const hadFocus = item.element.contains(document.activeElement);
        element.classList.add('changed');
        item.element.replaceWith(element);
        // A button that is no more hands the focus to the one in its place.
        if (hadFocus) (element.querySelector('button, a') || element).focus();
      }
      item = {text, element};
      known.set(key, item);
    }
    if (item.element.parentNode !== parent || item.element.nextSibling !== before) {
      parent.insertBefore(item.element, before);
    }
    before = item.element;
  }
}

/** The rows whose key begins with `prefix`, by key. */
function rowsOf(rows, prefix) {
  return [...rows].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => a < b ? -1 : 1);
}

/** Follows a stream of changes and comes back when it ends. Gives a function that stops it. */
function follow(url, onRows, onState) {
  const rows = new Map();
  let source = null, timer = 0, pending = 0, stopped = false;
  const open = () => {
    source = new EventSource(url);
    source.onopen = () => onState('live');
    source.onmessage = event => {
      const change = JSON.parse(event.data);
      if (change.reset) rows.clear();
      for (const [key, value] of Object.entries(change.set)) rows.set(key, value);
      for (const key of change.remove) rows.delete(key);
      // Hidden pages draw nothing; when shown again they draw the latest.
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(() => onRows(rows));
    };
    source.onerror = () => {
      onState('lost');
      source.close();
      if (!stopped) timer = setTimeout(open, 2000);
    };
  };
  open();
  return () => { stopped = true; clearTimeout(timer); cancelAnimationFrame(pending); source.close(); };
}

function showState(state) {
  const place = byId('state');
  place.className = `badge ${state === 'live' ? 'good' : 'warn'}`;
  say(place, state === 'live' ? '● live' : '○ connection lost, trying again');
}
