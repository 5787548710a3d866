"use strict";
// Data of users reaches the page through textContent and through properties of
// fields alone. What is shown is changed in place and where it has changed only,
// so that nothing is replaced that somebody has selected or focused.

const $ = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const set = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
const number = (n) => Number(n).toLocaleString("en");
const many = (n, one, more = one + "s") => `${number(n)} ${n === 1 ? one : more}`;
const bytes = (n) => n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} KiB`
  : n < 1073741824 ? `${(n / 1048576).toFixed(1)} MiB` : `${(n / 1073741824).toFixed(2)} GiB`;
const clock = (at) => {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString() ? date.toLocaleTimeString() : date.toLocaleString();
};

// Requests

let latest = { mongodb: {}, service_bus: {} };
const basic = (name, secret) => ({
  Authorization: "Basic " + btoa(String.fromCharCode(...new TextEncoder().encode(`${name}:${secret}`))),
});
const logins = {
  mongo: () => latest.mongodb.authentication && $("user").value ? basic($("user").value, $("password").value) : {},
  bus: () => latest.service_bus.authentication && $("key").value ? basic($("key").value, $("secret").value) : {},
  operator: () => latest.mongodb.authentication ? logins.mongo() : logins.bus(),
};

// ask returns the answer, or throws why there is none. Credentials are omitted so
// that the browser opens no window of its own for them.
async function ask(path, { method = "GET", body, as } = {}) {
  const url = new URL(path, document.baseURI);
  if ($("auth-source").value && as !== "bus") url.searchParams.set("authSource", $("auth-source").value);
  const response = await fetch(url, { method, body, headers: as ? logins[as]() : {}, credentials: "omit", cache: "no-store" });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `the sandbox answered ${response.status}`);
  return answer;
}

// attempt runs work and says in a note what came of it.
async function attempt(note, work) {
  $(note).classList.remove("bad");
  try {
    set($(note), await work());
  } catch (error) {
    $(note).classList.add("bad");
    set($(note), error.message);
  }
}

// Tables

const selectedIn = (host) => {
  const selection = getSelection();
  return !selection.isCollapsed && (host.contains(selection.anchorNode) || host.contains(selection.focusNode));
};

// patch makes the children of host those of items, which have keys: those that
// stay are the same elements as before.
function patch(host, items, key, create, update) {
  const names = items.map((item) => String(key(item)));
  const old = new Map();
  for (const child of [...host.children]) {
    if (names.includes(child.dataset.key)) old.set(child.dataset.key, child);
    else child.remove();
  }
  let at = host.firstElementChild;
  items.forEach((item, i) => {
    const child = old.get(names[i]) ?? create(item);
    child.dataset.key = names[i];
    update(child, item);
    if (child === at) at = at.nextElementSibling;
    else host.insertBefore(child, at);
  });
}

// table shows rows of cells under heads; a # begins the head of a number. A cell is
// a text or what link or button gave. The first cell, or keys, tell rows apart. The
// page says in data-says what each table is of.
function table(id, heads, rows, { empty = "" } = {}) {
  const host = $(id);
  if (selectedIn(host)) return;
  if (!host.firstElementChild) {
    host.append(make("p", { className: "note" }), make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((head) =>
        make("th", { scope: "col", className: head.startsWith("#") ? "n" : "", textContent: head.replace("#", "") })))),
      make("tbody")));
    host.lastChild.setAttribute("aria-label", host.dataset.says);
  }
  const [note, whole] = host.children;
  set(note, rows.length ? "" : empty);
  note.hidden = !note.textContent;
  whole.hidden = !rows.length;
  patch(whole.tBodies[0], rows, (row) => row.key ?? row[0].text ?? row[0],
    () => make("tr", {}, ...heads.map((head) => {
      const cell = make("td", { className: head.startsWith("#") ? "n" : "" });
      cell.dataset.label = head.replace("#", "");
      return cell;
    })),
    (tr, row) => heads.forEach((_, i) => fill(tr.cells[i], row[i])));
}

function fill(cell, content) {
  if (typeof content !== "object") {
    set(cell, String(content));
    return;
  }
  let inner = cell.firstElementChild;
  if (!inner) cell.append(inner = make(content.href ? "a" : "button", content.href ? {} : { type: "button" }));
  set(inner, content.text);
  if (content.href) inner.setAttribute("href", content.href);
  else inner.onclick = content.press;
}

const link = (text, part, query) => ({ text, href: `#${part}?${new URLSearchParams(query)}` });

function facts(id, list) {
  const host = $(id);
  if (selectedIn(host)) return;
  host.className = "facts";
  patch(host, list, ([name]) => name, ([name]) => make("span", {}, name + " ", make("b")), (span, [, value]) => set(span.lastChild, String(value)));
}

function addresses(list) {
  const host = $("addresses");
  if (selectedIn(host)) return;
  patch(host, list.flatMap(([name, value]) => [["dt", name], ["dd", value]]), ([tag, text]) => `${tag} ${text}`,
    ([tag]) => make(tag), (element, [, text]) => set(element, text));
}

function choices(id, names) {
  patch($(id), names, (name) => name, (name) => make("option", { value: name }, $(id).tagName === "SELECT" ? name : ""), () => {});
}

// What is here, every two seconds

const storesOf = (entities) => entities.filter((e) => e.kind !== "topic");

function show(status) {
  latest = status;
  const { mongodb: mongo, service_bus: bus, faults } = status;
  const entities = bus.namespace.entities ?? [];
  set($("sentence"), sentence(status));
  addresses([["MongoDB", mongo.uri], ["Service Bus", bus.connection_string], ["its administration", bus.management_url]]);
  $("signin").hidden = !mongo.authentication && !bus.authentication;
  $("signin-mongo").hidden = !mongo.authentication;
  $("signin-bus").hidden = !bus.authentication;
  choices("namespaces", mongo.collections.map((c) => c.namespace));
  choices("stores", storesOf(entities).flatMap((e) => [e.path, e.path + "/$DeadLetterQueue"]));
  choices("inlets", entities.filter((e) => e.kind !== "subscription").map((e) => e.path));
  choices("sessioned", storesOf(entities).filter((e) => e.requires_session).map((e) => e.path));
  table("collections", ["collection", "#documents", "#size", "indexes"],
    mongo.collections.map((c) => [link(c.namespace, "documents", { namespace: c.namespace }), number(c.documents), bytes(c.bytes), (c.indexes ?? []).join(", ")]),
    { empty: "No collection is there yet: insert a document, here or with a client." });
  table("entities", ["queue, topic or subscription", "#messages", "#dead letters", "#scheduled", "#deferred", "#sessions held", "#sessions waiting"],
    entities.map((e) => Object.assign([
      e.kind === "topic" ? e.path : link(e.path, "messages", { entity: e.path }),
      e.kind === "topic" ? "" : number(e.counts.Active),
      e.kind === "topic" ? "" : e.counts.DeadLetter ? link(number(e.counts.DeadLetter), "messages", { entity: e.path + "/$DeadLetterQueue" }) : "0",
      number(e.counts.Scheduled), number(e.counts.Deferred),
      e.requires_session ? link(number(e.sessions_locked), "sessions", { entity: e.path }) : "", e.requires_session ? number(e.sessions_ready) : "",
    ], { key: `${e.path} ${e.counts.DeadLetter > 0}` })), { empty: "There are no queues and no topics." });
  table("active", ["fault", "what", "since", "until", "end"], faults.map((f) => Object.assign([
    f.fault.kind, JSON.stringify({ ...f.fault, kind: undefined, for: undefined }), clock(f.since), f.until ? clock(f.until) : "it is ended",
    { text: "End", press: () => attempt("start-note", () => end(f.id)) },
  ], { key: f.id })), { empty: "No fault is under way." });
  set($("present-world"), `The present world is ${status.world}.`);
  numbers(mongo, bus, entities);
}

function sentence({ mongodb: mongo, service_bus: bus, faults, world }) {
  const clients = mongo.connections + bus.connections === 0
    ? "No client is connected."
    : `${many(mongo.connections, "connection")} to MongoDB and ${many(bus.connections, "connection")} to Service Bus ${mongo.connections + bus.connections === 1 ? "is" : "are"} open.`;
  const around = [faults.length ? `${many(faults.length, "fault")} ${faults.length === 1 ? "is" : "are"} under way.` : "", world === "loopback" ? "" : `The world is ${world}.`];
  return ["Stand-ins for MongoDB and Azure Service Bus, for development and tests.", clients, ...around].filter(Boolean).join(" ");
}

function numbers(mongo, bus, entities) {
  const o = mongo.oplog;
  facts("mongo-facts", [["version", mongo.version], ["connections", number(mongo.connections)],
    ["commands", number(mongo.commands)], ["sessions", number(mongo.sessions)], ["cursors", number(mongo.cursors)],
    ["change streams", number(mongo.change_streams)], ["authentication", mongo.authentication ? "on" : "off"],
    ["oplog", `${number(o.entries)} of ${number(o.max_entries)} entries, ${bytes(o.bytes)} of ${bytes(o.max_bytes)}`],
    ["its window", many(o.window_seconds, "second")], ["its history", o.history_lost ? "older entries are gone" : "complete"]]);
  table("cursors", ["cursor on", "kind", "application", "user", "state"], mongo.open_cursors.map((c, i) => Object.assign(
    [c.namespace, c.change_stream ? "change stream" : "query", c.application || "–", c.user || "–",
      c.in_use ? "in use" : `idle for ${many(c.idle_seconds, "second")}`], { key: i })));
  table("transactions", ["transaction of session", "#number", "#age", "#documents written", "collections"], mongo.transactions.map((t) =>
    [t.session, number(t.number), many(t.age_seconds, "second"), number(t.writes), t.collections.join(", ")]));
  facts("bus-facts", [["connections", number(bus.connections)],
    ["keys are checked", bus.authentication ? "yes" : "no"]]);
  table("traffic", ["entity", "kind", "#received", "#duplicates", "#delivered", "#completed", "#locks expired", "#receivers"], entities.map((e) =>
    [e.path, e.kind, number(e.received), number(e.duplicates), number(e.delivered), number(e.completed), number(e.expired_locks), number(e.receivers)]));
}

async function refresh() {
  if (document.hidden) return;
  try {
    show(await ask("status"));
    $("trouble").hidden = true;
  } catch (error) {
    set($("trouble"), `The sandbox does not answer (${error.message}); what is shown is old.`);
    $("trouble").hidden = false;
  }
}
