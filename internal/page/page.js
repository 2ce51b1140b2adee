// Renews the view every two seconds by fetching the page again, and counts
// its age in between. Without an answer the old view stays and says so.
"use strict";
(() => {
  const period = 2000, patience = 5000;
  const silent = document.getElementById("silent");
  let age = Number(document.getElementById("view").dataset.age), at = performance.now();

  const text = (seconds) =>
    seconds < 10 ? seconds.toFixed(1) + " s" :
    seconds < 120 ? Math.floor(seconds) + " s" :
    seconds < 3600 ? Math.floor(seconds / 60) + " min" :
    Math.floor(seconds / 3600) + " h " + Math.floor(seconds / 60) % 60 + " min";

  function tick() {
    const shown = document.getElementById("age");
    if (!shown) return;
    const seconds = age + (performance.now() - at) / 1000;
    shown.textContent = text(seconds);
    shown.closest(".sample").classList.toggle("stale", seconds >= 10);
  }

  // morph makes one node like another and leaves alone what is equal, so that
  // selections, focus and running transitions survive.
  function morph(from, to) {
    if (from.isEqualNode(to)) return;
    if (from.nodeName !== to.nodeName || from.nodeType !== Node.ELEMENT_NODE || from.dataset.key !== to.dataset.key) {
      from.replaceWith(to);
      return;
    }
    for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
    for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    const before = [...from.childNodes], after = [...to.childNodes];
    after.forEach((child, i) => before[i] ? morph(before[i], child) : from.append(child));
    before.slice(after.length).forEach((child) => child.remove());
  }

  async function renew() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(patience) });
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const view = fresh.getElementById("view");
      if (!view) throw new Error("not the page");
      morph(document.getElementById("view"), view);
      document.title = fresh.title;
      age = Number(document.getElementById("view").dataset.age);
      at = performance.now();
      silent.hidden = true;
    } catch {
      silent.hidden = false;
    }
    tick();
  }

  async function loop() {
    await renew();
    setTimeout(loop, period);
  }

  setInterval(tick, 200);
  setTimeout(loop, period);
  document.addEventListener("visibilitychange", renew);
})();
