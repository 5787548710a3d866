"use strict";
// What somebody asks for: it is shown once, and stays until the next question.
// The question is in the address, so that it can be kept, sent and gone back to.

const moreLinks = (id, list) => $(id).replaceChildren(...list.filter(Boolean).map(({ text, href }) => make("a", { textContent: text, href })));

async function findDocuments(query) {
  const { namespace = "", ...rest } = query;
  const dot = namespace.indexOf(".");
  if (dot < 1) throw new Error("Name a collection with its database, such as shop.events.");
  const path = `documents/${encodeURIComponent(namespace.slice(0, dot))}/${encodeURIComponent(namespace.slice(dot + 1))}`;
  const { documents, more, next_skip: next } = await ask(`${path}?${new URLSearchParams({ ...rest, text: "true" })}`, { as: "mongo" });
  $("found").replaceChildren(...documents.map((text) => make("pre", { textContent: text, tabIndex: 0 })));
  const skip = Number(rest.skip ?? 0);
  moreLinks("found-more", [skip > 0 && link("To the beginning", "documents", { ...query, skip: 0 }), more && link("Next", "documents", { ...query, skip: next })]);
  return documents.length ? `${many(documents.length, "document")} of ${namespace}${skip ? `, from number ${number(skip + 1)}` : ""}.` : `No document of ${namespace} matches.`;
}

const fieldNames = {
  message_id: "message id", session_id: "session", partition_key: "partition key", subject: "subject", enqueued_at: "enqueued", expires_at: "expires",
  locked_until: "locked until", delivery_count: "failed deliveries", state: "state", to: "to", reply_to: "reply to", correlation_id: "correlation id",
  content_type: "content type", content_encoding: "content encoding", dead_letter_source: "dead letter of", dead_letter_reason: "reason",
  dead_letter_description: "description",
};

function messageElement(m) {
  const list = make("dl");
  for (const [field, name] of Object.entries(fieldNames)) {
    if (m[field] === undefined) continue;
    list.append(make("dt", { textContent: name }), make("dd", { textContent: /_at$|_until$/.test(field) ? clock(m[field]) : m[field] }));
  }
  for (const [name, { type, value }] of Object.entries(m.properties)) {
    list.append(make("dt", { textContent: name }), make("dd", { textContent: `${value} (${type})` }));
  }
  const summary = [m.session_id !== undefined && `session ${m.session_id}`, m.subject, clock(m.enqueued_at), m.state !== "active" && m.state,
    m.delivery_count > 0 && many(m.delivery_count, "failed delivery", "failed deliveries"), m.dead_letter_reason];
  return make("details", {},
    make("summary", {}, make("b", { textContent: m.sequence_number }), ...summary.filter(Boolean).map((textContent) => make("span", { textContent })),
      make("span", { className: "preview", textContent: m.body.text.replace(/\s+/g, " ").slice(0, 100) })),
    list, make("p", { className: "note", textContent: `Body: ${bytes(m.body.bytes)}, shown as ${m.body.form}` }),
    make("pre", { textContent: m.body.text, tabIndex: 0 }));
}

async function peekMessages(query) {
  const { messages, more, next_from: next } = await ask(`messages?${new URLSearchParams(query)}`, { as: "bus" });
  $("peeked").replaceChildren(...messages.map(messageElement));
  moreLinks("peeked-more", [query.from && link("To the beginning", "messages", { ...query, from: "" }), more && link("Next", "messages", { ...query, from: next })]);
  return messages.length ? `${many(messages.length, "message")} of ${query.entity}, as of ${clock(Date.now())}.` : `No message lies in ${query.entity}.`;
}

async function listSessions(query) {
  const { sessions, more } = await ask(`sessions?${new URLSearchParams(query)}`, { as: "bus" });
  getSelection().removeAllRanges();
  table("listed", ["session", "#messages", "held by", "lock ends"], sessions.map((s) => Object.assign([
    link(s.id, "messages", { entity: query.entity, session: s.id }), number(s.messages),
    s.locked ? s.holder || "a receiver without a name" : "", s.locked ? clock(s.locked_until) : ""], { key: s.id })));
  moreLinks("listed-more", [query.after !== undefined && link("To the beginning", "sessions", { entity: query.entity, ...(query.held && { held: "true" }) }),
    more && link("Next", "sessions", { ...query, after: sessions.at(-1).id })]);
  return sessions.length ? `${many(sessions.length, "session")} of ${query.entity}, as of ${clock(Date.now())}.` : `${query.entity} has no such session.`;
}

const parts = {
  documents: { form: "find", note: "found-note", look: findDocuments, extra: ["skip"] },
  messages: { form: "peek", note: "peeked-note", look: peekMessages, extra: [] },
  sessions: { form: "list", note: "listed-note", look: listSessions, extra: ["after"] },
};

// go does what the address asks for.
function go() {
  const [name, search] = location.hash.slice(1).split(/\?(.*)/s);
  const part = parts[name];
  if (!part || !search) return;
  const query = Object.fromEntries([...new URLSearchParams(search)].filter(([, value]) => value !== ""));
  for (const field of $(part.form).elements) {
    if (!field.name) continue;
    if (field.type === "checkbox") field.checked = query[field.name] === field.value;
    else if (query[field.name] !== undefined) field.value = query[field.name];
    else if (field.tagName !== "SELECT" && field.type !== "number") field.value = "";
  }
  attempt(part.note, () => part.look(query));
  const { top, bottom } = $(part.form).getBoundingClientRect();
  if (top < 0 || bottom > innerHeight) $(name + "-title").scrollIntoView();
}

for (const [name, part] of Object.entries(parts)) {
  $(part.form).addEventListener("submit", (event) => {
    event.preventDefault();
    const query = [...new FormData(event.target)].filter(([, value]) => value !== "");
    const hash = `#${name}?${new URLSearchParams(query)}`;
    if (hash === location.hash) go();
    else location.hash = hash;
  });
}
addEventListener("hashchange", go);
