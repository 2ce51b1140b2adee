// Fetches the page again every two seconds and patches the view by key, so that what is
// focused, selected, open or scrolled to stays. Filter, groups and order are in the
// address, and the server applies them: without a script, the same form and links work.
"use strict";
(() => {
  const period = 2000, patience = 5000;
  const byId = (id) => document.getElementById(id);
  const view = byId("view"), silent = byId("silent"), updated = byId("updated"), pause = byId("pause");
  const form = byId("controls"), keys = byId("keys"), again = byId("again");
  document.documentElement.classList.add("scripted");
  let age = Number(view.dataset.age), at = performance.now();
  let paused = false, failed = false, request = null, delay = 0;

  const text = (seconds) =>
    seconds < 10 ? seconds.toFixed(1) + " s" :
    seconds < 120 ? Math.floor(seconds) + " s" :
    seconds < 3600 ? Math.floor(seconds / 60) + " min" :
    Math.floor(seconds / 3600) + " h " + Math.floor(seconds / 60) % 60 + " min";

  // tick counts the age of the newest sample between two updates.
  function tick() {
    const shown = byId("age");
    if (!shown) return;
    const seconds = age + (performance.now() - at) / 1000;
    shown.textContent = text(seconds);
    shown.closest(".sample").classList.toggle("stale", seconds >= 10);
  }

  // showState says how old the view is, and why it is not newer.
  function showState() {
    const when = view.dataset.at;
    updated.textContent = paused ? "paused at " + when : failed ? "not updated since " + when : "updated " + when;
    byId("silent-at").textContent = when;
    silent.hidden = !failed;
    pause.setAttribute("aria-pressed", paused);
  }

  // Patching. An element with data-key is matched with the one of the same key. The order of
  // such elements changes only when the reader asks: `ordered`.

  let selected = []; // the nodes in which the reader's selection begins and ends; asking for it costs a layout

  const sameKind = (a, b) => a.nodeName === b.nodeName && a.nodeType === b.nodeType;

  function hasKeys(node) {
    for (let child = node.firstElementChild; child; child = child.nextElementSibling) if (child.hasAttribute("data-key")) return true;
    return false;
  }

  function patch(from, to, ordered) {
    if (from.isEqualNode(to)) return;
    if (from.nodeType !== Node.ELEMENT_NODE) {
      // New text would end a selection that begins or ends in it.
      if (!selected.includes(from) && from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    const own = (name) => name === "open" && from.nodeName === "DETAILS" && !ordered; // the reader opens and closes
    for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !own(name)) from.removeAttribute(name);
    for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value && !own(name)) from.setAttribute(name, value);
    if (hasKeys(from) || hasKeys(to)) patchKeyed(from, to, ordered);
    else patchNodes(from, to, ordered);
  }

  // patchNodes matches children by their place.
  function patchNodes(from, to, ordered) {
    let before = from.firstChild, after = to.firstChild;
    while (after) {
      const [match, child] = [before, after];
      [before, after] = [before?.nextSibling, after.nextSibling];
      if (!match) from.append(child);
      else if (!sameKind(match, child)) match.replaceWith(child);
      else patch(match, child, ordered);
    }
    while (before) {
      const child = before;
      before = before.nextSibling;
      child.remove();
    }
  }

  // patchKeyed matches child elements by key, those without one by their place. Text between
  // them is only white space.
  function patchKeyed(from, to, ordered) {
    const old = new Map(), rest = [];
    for (const child of from.children) child.dataset.key === undefined ? rest.push(child) : old.set(child.dataset.key, child);
    let last = null; // the element after which the next one belongs
    const place = (child) => last ? last.after(child) : from.prepend(child);
    for (const child of [...to.children]) {
      const key = child.dataset.key;
      const match = key === undefined ? rest.shift() : old.get(key);
      old.delete(key);
      if (!match || !sameKind(match, child)) {
        match?.remove();
        place(child);
        last = child;
        continue;
      }
      patch(match, child, ordered);
      const follows = !last || last.compareDocumentPosition(match) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (!follows && ordered) place(match);
      else if (!follows) again.hidden = false;
      if (follows || ordered) last = match;
    }
    [...old.values(), ...rest].forEach((child) => child.remove());
  }

  // landmark is the row that the reader looks at: the one with the focus or the selection,
  // else the first one in the window once the page is scrolled.
  function landmark() {
    const inWindow = (row) => { const box = row.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; };
    for (const node of [document.activeElement, selected[0]]) {
      const row = (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.("#view [data-key]");
      if (row && inWindow(row)) return row;
    }
    if (scrollY === 0) return null;
    return [...view.querySelectorAll("tr[data-key], li[data-key]")].find((row) => row.getBoundingClientRect().top >= 0 && inWindow(row));
  }

  function show(fresh, ordered) {
    const selection = getSelection();
    selected = selection.isCollapsed ? [] : [selection.anchorNode, selection.focusNode];
    const row = landmark(), top = row?.getBoundingClientRect().top;
    if (ordered) again.hidden = true;
    patch(view, fresh.getElementById("view"), ordered);
    if (row?.isConnected) scrollBy(0, row.getBoundingClientRect().top - top);
    document.title = (paused ? "⏸ " : "") + fresh.title;
    age = Number(view.dataset.age);
    at = performance.now();
  }

  // renew fetches the page. What the reader has asked for is shown in the server's order, and
  // replaces a request under way.
  async function renew(asked) {
    if (!asked && (paused || document.hidden || request)) return;
    request?.abort();
    const own = request = new AbortController();
    const late = setTimeout(() => own.abort(), patience);
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-store", signal: own.signal });
      if (!answer.ok && answer.status !== 404) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (own !== request) return;
      if (!fresh.getElementById("view")) throw new Error("not the page");
      show(fresh, asked);
      failed = false;
    } catch {
      if (own !== request) return;
      failed = true;
    } finally {
      clearTimeout(late);
      if (own === request) request = null;
    }
    showState();
    tick();
  }

  async function loop() {
    await renew(false);
    setTimeout(loop, period);
  }

  // The state of the view in the address.

  function visit(search, push) {
    const address = location.pathname + search;
    push ? history.pushState(null, "", address) : history.replaceState(null, "", address);
    renew(true);
  }

  function visitForm(push) {
    const search = new URLSearchParams(location.search);
    for (const field of form.querySelectorAll("[name]")) field.value ? search.set(field.name, field.value) : search.delete(field.name);
    visit(search.size ? "?" + search : "", push);
  }

  function togglePause() {
    paused = !paused;
    document.title = document.title.replace(/^⏸ /, "");
    if (paused) document.title = "⏸ " + document.title;
    showState();
    renew(false);
  }

  // step moves the focus to the next or the previous row.
  function step(by) {
    const rows = [...view.querySelectorAll("a.name")].filter((row) => row.offsetParent);
    const here = rows.indexOf(document.activeElement);
    rows[here < 0 ? (by > 0 ? 0 : rows.length - 1) : here + by]?.focus();
  }

  const actions = {
    "/": () => { byId("filter")?.focus(); byId("filter")?.select(); },
    "p": togglePause,
    "j": () => step(1),
    "k": () => step(-1),
    "?": () => keys.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") { event.preventDefault(); event.target.blur(); } // by default it empties the field
      return;
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  form.addEventListener("submit", (event) => { event.preventDefault(); visitForm(true); });
  form.addEventListener("input", () => { clearTimeout(delay); delay = setTimeout(visitForm, 150); });
  view.addEventListener("click", (event) => {
    const link = event.target.closest("a.order");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    visit(link.search, true);
  });
  addEventListener("popstate", () => {
    const search = new URLSearchParams(location.search);
    for (const field of form.querySelectorAll("[name]")) field.value = search.get(field.name) ?? "";
    renew(true);
  });
  pause.addEventListener("click", togglePause);
  again.addEventListener("click", () => renew(true));
  byId("help").addEventListener("click", () => keys.showModal());
  document.addEventListener("visibilitychange", () => renew(false));

  showState();
  setInterval(tick, 200);
  setTimeout(loop, period);
})();
