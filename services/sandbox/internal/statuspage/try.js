"use strict";
// What somebody tries: each form sends one request, and its note says what came
// of it.

const trying = (form, work) => $(form).addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.target));
  attempt(form + "-note", async () => {
    const said = await work(fields);
    refresh();
    return said;
  });
});

trying("insert", async ({ namespace, document }) => {
  const dot = namespace.indexOf(".");
  if (dot < 1) throw new Error("Name a collection with its database, such as shop.events.");
  const path = `documents/${encodeURIComponent(namespace.slice(0, dot))}/${encodeURIComponent(namespace.slice(dot + 1))}`;
  const inserted = await ask(path, { method: "POST", body: document, as: "mongo" });
  return `Inserted with _id ${JSON.stringify(inserted._id)}.`;
});

trying("send", async ({ entity, message }) => {
  await ask(`messages?${new URLSearchParams({ entity })}`, { method: "POST", body: message, as: "bus" });
  return `Sent to ${entity} at ${clock(Date.now())}.`;
});

trying("start", async ({ fault }) => {
  const { id, affected } = await ask("faults", { method: "POST", body: fault, as: "operator" });
  return id ? `Fault ${id} is under way; it hit ${affected} at once.` : `Done; it hit ${affected}.`;
});

async function end(id) {
  await ask(`faults/${id}`, { method: "DELETE", as: "operator" });
  refresh();
  return `Fault ${id} is over.`;
}

trying("enter", async ({ world }) => {
  await ask(`world/${encodeURIComponent(world)}`, { method: "PUT", as: "operator" });
  return `The world is ${world} now.`;
});

async function offer() {
  const [{ kinds }, { names, world }] = await Promise.all([ask("faults"), ask("world")]);
  choices("kinds", kinds.map((kind) => kind.name));
  choices("worlds", names);
  if (names.includes(world.name)) $("worlds").value = world.name;
  const propose = () => {
    const kind = kinds.find(({ name }) => name === $("kinds").value);
    set($("does"), kind.does);
    $("start").elements.fault.value = JSON.stringify(kind.example, null, 2);
  };
  $("kinds").addEventListener("change", propose);
  propose();
}

for (const form of document.querySelectorAll("[data-quiet]")) form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, 2000);
refresh().then(go);
attempt("start-note", async () => {
  await offer();
  return "";
});
