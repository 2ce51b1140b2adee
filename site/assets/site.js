// The scripts of the documentation: colours, menu, copy buttons, the place in
// the document, versions and search. Nothing is loaded from another host, and
// all of it works in a folder without a server, except that a change of the
// version then leads to the first page of the other version.
"use strict";
(() => {
  const root = new URL(".", document.currentScript.src); // the folder of this version
  const page = document.documentElement;
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const say = (text) => { find("[role=status].aside").textContent = text; };
  const load = (url) => new Promise((done, failed) => {
    const script = element("script", { src: url });
    script.onload = done;
    script.onerror = () => failed(new Error(`${url} cannot be loaded`));
    document.head.append(script);
  });

  // Colours: as the system, light, dark.
  const themes = { system: "Auto", light: "Light", dark: "Dark" };
  const themeButton = find("button.theme");
  const showTheme = () => {
    const theme = page.dataset.theme in themes ? page.dataset.theme : "system";
    themeButton.textContent = themes[theme];
    themeButton.setAttribute("aria-label", `Colours: ${themes[theme].toLowerCase()}. Change`);
  };
  themeButton.addEventListener("click", () => {
    const names = Object.keys(themes);
    page.dataset.theme = names[(names.indexOf(page.dataset.theme) + 1) % names.length];
    try { localStorage.setItem("dra-exporter-theme", page.dataset.theme); } catch { /* for this page alone */ }
    showTheme();
  });
  showTheme();

  // The navigation on narrow screens.
  const menu = find("button.menu");
  const navigation = find("#navigation");
  const openMenu = (open) => {
    navigation.classList.toggle("open", open);
    menu.setAttribute("aria-expanded", open);
  };
  menu.addEventListener("click", () => openMenu(!navigation.classList.contains("open")));
  navigation.addEventListener("click", (event) => { if (event.target.closest("a")) openMenu(false); });
  const here = find("[aria-current]", navigation);
  if (here) navigation.scrollTop = here.offsetTop - navigation.clientHeight / 2;

  // Copy buttons. Of a session, only the commands are copied.
  const commands = (text) => {
    const lines = [];
    let continued = false;
    for (const line of text.split("\n")) {
      if (!continued && !line.startsWith("$ ")) continue;
      const command = continued ? line : line.slice(2);
      lines.push(command);
      continued = command.endsWith("\\");
    }
    return lines.length > 0 ? lines.join("\n") + "\n" : text;
  };
  for (const pre of all("main pre")) {
    const code = find("code", pre) ?? pre;
    const button = element("button", { class: "copy", type: "button", "aria-label": "Copy the code" }, "Copy");
    button.addEventListener("click", async () => {
      const text = code.dataset.lang === "console" ? commands(code.textContent) : code.textContent;
      let done = "Copied";
      try {
        await navigator.clipboard.writeText(text);
      } catch { // not allowed: the code is selected, so that a key copies it
        getSelection().selectAllChildren(code);
        done = "Selected";
      }
      button.textContent = done;
      say(done);
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    const box = element("div", { class: "code" });
    pre.replaceWith(box);
    box.append(pre, button);
  }
  for (const table of all("main .table")) {
    if (table.scrollWidth > table.clientWidth) {
      table.tabIndex = 0; // the arrow keys move it
      table.setAttribute("role", "region");
      table.setAttribute("aria-label", "Table");
    }
  }

  // The heading that is being read.
  const places = new Map(all(".contents a").map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const headings = [...places.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const showPlace = () => {
    const limit = innerHeight / 4;
    let current = headings[0];
    for (const heading of headings) if (heading.getBoundingClientRect().top < limit) current = heading;
    for (const [id, link] of places) {
      if (current && id === current.id) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  };
  if (headings.length > 0) {
    let queued = false;
    addEventListener("scroll", () => {
      if (queued) return;
      queued = true;
      requestAnimationFrame(() => { queued = false; showPlace(); });
    }, { passive: true });
    showPlace();
  }

  // Versions. versions.js is in the folder above, with the newest first.
  const version = page.dataset.version;
  const path = location.href.split(/[?#]/)[0].replace(root.href, "");
  const otherVersion = async (name) => {
    const folder = new URL(`../${name}/`, root);
    try {
      const answer = await fetch(new URL(path, folder), { method: "HEAD" });
      if (answer.ok) return new URL(path, folder);
    } catch { /* without a server */ }
    return new URL("index.html", folder);
  };
  const showVersions = () => {
    const names = globalThis.draVersions ?? [];
    if (!names.includes(version)) return;
    const select = find("select.version");
    select.append(...names.map((name) => new Option(name, name, name === version, name === version)));
    select.hidden = false;
    find("span.version").hidden = true;
    select.addEventListener("change", async () => { location.href = await otherVersion(select.value); });
    addEventListener("pageshow", () => { select.value = version; });
    const newest = names[0];
    if (version !== newest) {
      const link = element("a", { href: new URL(`../${newest}/index.html`, root) }, newest);
      link.addEventListener("click", async (event) => {
        event.preventDefault();
        location.href = await otherVersion(newest);
      });
      const note = find(".older");
      note.append(version === "main" ? "This is the documentation of what is not released yet. The newest release is " : `This is the documentation of ${version}. The newest release is `, link, ".");
      note.hidden = false;
    }
  };
  if (version) load(new URL("../versions.js", root)).then(showVersions, () => { /* a version alone */ });

  // Search. A text is compared as words, without signs and accents, so that the
  // parts of dra_claim_held are found too; so are those of DRAClaimIdle.
  const words = (text) => text.normalize("NFKD").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const plain = (text) => ` ${words(text).join(" ")} `;
  const named = (text) => {
    const parts = text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2");
    return parts === text ? plain(text) : plain(`${text} ${parts}`);
  };

  let sections; // of all pages
  const prepare = (index) => index.flatMap((entry) => entry.sections.map(({ id, heading, text }, number) => ({
    entry, id, heading, text: text || (number === 0 && entry.sections[1]?.text) || "", first: number === 0,
    title: named(entry.title), headingWords: named(heading), textWords: plain(text),
    // A name is explained by the reference, and the changelog has all that ever changed.
    weight: entry.url === "changelog.html" ? 0.3 : entry.group === "Reference" ? 1.2 : 1,
  })));

  // terms returns what has to be found: dra_claim_held is one term of three words,
  // which follow each other.
  const terms = (text) => text.split(/\s+/).map((term) => words(term).join(" ")).filter(Boolean);

  // score returns 0 unless every term is in the section or in the title of its page.
  const score = (section, query) => {
    let sum = 0;
    for (const term of query) {
      const whole = ` ${term} `, start = ` ${term}`;
      const best = Math.max(
        section.title.includes(whole) ? (section.first ? 40 : 12) : section.title.includes(start) ? (section.first ? 25 : 8) : 0,
        section.first ? 0 : section.headingWords.includes(whole) ? 22 : section.headingWords.includes(start) ? 14 : 0,
        section.textWords.includes(whole) ? 6 : section.textWords.includes(start) ? 3 : 0,
      );
      if (best === 0) return 0;
      sum += best;
    }
    const phrase = ` ${query.join(" ")}`;
    if (section.first && section.title.includes(phrase)) sum += 40 + 40 * (phrase.length / section.title.length); // the shortest title first
    else if (section.headingWords.includes(phrase)) sum += 25;
    if (query.length > 1) sum += section.textWords.includes(`${phrase} `) ? 12 : section.textWords.includes(phrase) ? 8 : 0;
    return sum * section.weight;
  };
  const search = (text, perPage = Infinity) => {
    const query = terms(text);
    if (query.length === 0) return [];
    const found = sections.map((section) => ({ section, score: score(section, query) })).filter((hit) => hit.score > 0);
    found.sort((a, b) => b.score - a.score);
    const shown = new Map();
    return found.map((hit) => hit.section).filter(({ entry }) => {
      shown.set(entry, (shown.get(entry) ?? 0) + 1);
      return shown.get(entry) <= perPage;
    });
  };

  const pattern = (query) => {
    const longestFirst = [...query].sort((a, b) => b.length - a.length);
    return new RegExp(`(?<![\\p{L}\\p{N}])(?:${longestFirst.map((term) => term.replaceAll(" ", "[^\\p{L}\\p{N}]+")).join("|")})`, "giu");
  };
  const highlighted = (text, query) => {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(pattern(query))) {
      parts.push(text.slice(end, match.index), element("mark", {}, match[0]));
      end = match.index + match[0].length;
    }
    parts.push(text.slice(end));
    return parts;
  };
  // excerpt returns the part of a text with the most terms of the query, and the
  // whole name around the first of them.
  const excerpt = (text, query, length) => {
    const matches = [...text.matchAll(pattern(query))];
    let best = 0, start = 0, name = "";
    for (const [i, match] of matches.entries()) {
      const seen = new Set();
      for (let j = i; j < matches.length && matches[j].index < match.index + length * 0.7; j++) seen.add(matches[j][0].toLowerCase());
      if (seen.size <= best) continue;
      best = seen.size;
      start = match.index;
      const end = start + match[0].length;
      name = text.slice(0, start).match(/[\p{L}\p{N}_]*$/u)[0] + match[0] + text.slice(end).match(/^[\p{L}\p{N}_]*/u)[0];
    }
    let from = Math.max(0, start - Math.round(length / 4));
    if (from > 0) from = text.indexOf(" ", from) + 1 || from;
    if (from > start) from = start;
    const part = text.slice(from, from + length);
    return { text: (from > 0 ? "… " : "") + part + (from + length < text.length ? " …" : ""), name };
  };
  const result = (section, query, length) => {
    const cut = excerpt(section.text, query, length);
    const address = new URL(section.entry.url, root);
    if (!section.first) address.hash = section.id;
    // Browsers that know text fragments mark the name in the page.
    const href = address.href + (cut.name ? `${section.first ? "#" : ""}:~:text=${encodeURIComponent(cut.name).replaceAll("-", "%2D")}` : "");
    const title = section.first ? section.entry.title : `${section.entry.title} › ${section.heading}`;
    const line = element("span", { class: "hit" }, ...highlighted(title, query));
    if (section.entry.group) line.prepend(element("span", { class: "group" }, section.entry.group));
    return element("a", { href }, line, element("span", { class: "excerpt" }, ...highlighted(cut.text, query)));
  };

  let loading;
  const ready = () => loading ??= load(new URL("search-index.js", root)).then(() => { sections = prepare(globalThis.draSearchIndex); });

  const form = find("form.search");
  const input = find("input", form);
  const list = find("#results");
  let chosen = -1;
  const choose = (number) => {
    const options = all("[role=option]", list);
    chosen = options.length === 0 ? -1 : (number + options.length) % options.length;
    for (const [i, option] of options.entries()) option.setAttribute("aria-selected", i === chosen);
    if (chosen >= 0) {
      input.setAttribute("aria-activedescendant", options[chosen].id);
      options[chosen].scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };
  const openList = (open) => {
    list.hidden = !open;
    input.setAttribute("aria-expanded", open);
    if (!open) choose(-1);
  };
  const update = async () => {
    await ready();
    const text = input.value;
    const query = terms(text);
    if (query.length === 0) { openList(false); return; }
    const found = search(text, 3);
    const options = found.slice(0, 8).map((section) => result(section, query, 150));
    if (found.length > 8) {
      const every = new URL(form.action);
      every.searchParams.set("q", text);
      options.push(element("a", { href: every.href, class: "every" }, `All results for “${text}”`));
    }
    for (const link of options) link.tabIndex = -1;
    list.replaceChildren(...options.map((link, i) => element("li", { role: "option", id: `result-${i}`, "aria-selected": "false" }, link)));
    if (options.length === 0) list.append(element("li", { class: "none" }, "Nothing is found."));
    say(options.length === 0 ? "Nothing is found" : `${found.length} results`);
    openList(true);
    choose(0);
  };
  const failed = (error) => say(error.message);
  input.addEventListener("focus", () => { ready().catch(failed); if (input.value) update().catch(failed); });
  input.addEventListener("input", () => update().catch(failed));
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (list.hidden) update().catch(failed);
      else choose(chosen + step);
    } else if (event.key === "Enter" && !list.hidden && chosen >= 0) {
      event.preventDefault();
      find("a", all("[role=option]", list)[chosen]).click();
      openList(false);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (list.hidden) input.value = "";
      openList(false);
    }
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field stays focused until the click
  list.addEventListener("click", () => openList(false));
  input.addEventListener("blur", () => openList(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && navigation.classList.contains("open")) {
      openMenu(false);
      menu.focus();
    }
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });

  // The page of all results.
  const results = find("article.results");
  if (results) {
    const text = new URLSearchParams(location.search).get("q") ?? "";
    input.value = text;
    ready().then(() => {
      const query = terms(text);
      const found = search(text);
      find(".count", results).textContent = query.length === 0 ? "Type words into the field at the top." : `${found.length} sections have all words of “${text}”.`;
      find("ol", results).replaceChildren(...found.slice(0, 100).map((section) => element("li", {}, result(section, query, 280))));
    }).catch((error) => { find(".count", results).textContent = error.message; });
  }
})();
