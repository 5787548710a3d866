// What a script finds in its engine: the types of BSON and the helpers that the
// server gives it. The value of this program is the function by which Go calls
// scripts.
//
// Values are passed as JSON. What JSON has no text for is an object with the key
// "\0", which no document can have: the type there, what it is made of under "v".
((sleepFor, md5) => {
"use strict";
const tag = "\0";
const { parse, stringify } = JSON;
const { keys, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, create, is } = Object;
const { isArray } = Array;
const { isFinite } = Number;
const { apply, ownKeys } = Reflect;
const viewed = ArrayBuffer.isView;
const compile = Function, everywhere = eval, text = String, number = Number, whole = BigInt, wrap = BigInt.asIntN;
const dateOf = Date, regExpOf = RegExp;
const sourceOf = Function.prototype.toString;
const timeOf = Date.prototype.getTime;

const hide = (object, name, value) =>
	defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });

// Loops within the engine are not interrupted: none may be long. So nothing that
// stands for an array is gone through by the engine if it is longer than this.
const longest = 4000000;
const tooLong = () => new RangeError("the array is too long");
const bounded = (list) => {
	if (list === null || typeof list !== "object" && typeof list !== "function") return 0;
	const own = getOwnPropertyDescriptor(list, "length");
	if (own === undefined && (viewed(list) || !("length" in list))) return 0;
	if (own === undefined || typeof own.value !== "number" || !(own.value <= longest)) throw tooLong();
	return own.value;
};
const constantTime = ["constructor", "at", "entries", "keys", "pop", "push", "values", Symbol.iterator];
for (const name of ownKeys(Array.prototype)) {
	const native = Array.prototype[name];
	if (typeof native !== "function" || constantTime.includes(name)) continue;
	hide(Array.prototype, name, { [name](...args) {
		bounded(this);
		return apply(native, this, args);
	} }[name]);
}
const concat = Array.prototype.concat;
hide(Array.prototype, "concat", function(...lists) {
	let n = bounded(this);
	for (let i = 0; i < lists.length; i++) if ((n += bounded(lists[i])) > longest) throw tooLong();
	return apply(concat, this, lists);
});
const flatten = (into, list, depth) => {
	const n = bounded(list);
	for (let i = 0; i < n; i++) {
		if (!(i in list)) continue;
		if (depth > 0 && isArray(list[i])) flatten(into, list[i], depth - 1);
		else into[into.length] = list[i];
	}
	return into;
};
const map = Array.prototype.map;
hide(Array.prototype, "flat", function(depth = 1) { return flatten([], this, depth); });
hide(Array.prototype, "flatMap", function(f, self) { return flatten([], apply(map, this, [f, self]), 1); });
const from = Array.from;
hide(Array, "from", function(list, ...more) {
	if (list !== null && list !== undefined && list[Symbol.iterator] === undefined) bounded(list);
	return apply(from, this, [list, ...more]);
});
const raw = String.raw;
hide(String, "raw", (strings, ...values) => { bounded(strings.raw); return raw(strings, ...values); });
hide(JSON, "stringify", (value, replacer, space) => { bounded(replacer); return stringify(value, replacer, space); });
const iterators = getPrototypeOf([][Symbol.iterator]());
const next = iterators.next;
hide(iterators, "next", { next() { return apply(next, this, []); } }.next); // a function of its own can be interrupted
delete globalThis.Atomics;
delete globalThis.SharedArrayBuffer;

const global = (name, value) => hide(globalThis, name, value);
// type makes a class callable without new, as the server's types are.
const type = (made) => {
	const f = { [made.name](...args) { return new made(...args); } }[made.name];
	const g = function(...args) { return new made(...args); };
	defineProperty(g, "name", { value: f.name });
	g.prototype = made.prototype;
	hide(made.prototype, "constructor", g);
	global(made.name, g);
	return made;
};
const hexOf = (v, size) => {
	v = text(v);
	if (!/^[0-9a-fA-F]*$/.test(v) || v.length !== size) throw new Error(`expected ${size} hexadecimal digits`);
	return v.toLowerCase();
};
const randomHex = (size) => { let s = ""; while (s.length < size) s += (Math.random() * 16 | 0).toString(16); return s; };
const symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const bytesOf = (base64) => {
	const bytes = [];
	let bits = 0, n = 0;
	for (let i = 0; i < base64.length && base64[i] !== "="; i++) {
		const digit = symbols.indexOf(base64[i]);
		if (digit < 0) throw new Error("expected base64");
		bits = (bits << 6 | digit) & 0xffffff;
		if ((n += 6) >= 8) bytes[bytes.length] = bits >> (n -= 8) & 255;
	}
	return bytes;
};
const base64Of = (bytes) => {
	let s = "";
	for (let i = 0; i < bytes.length; i += 3) {
		const bits = bytes[i] << 16 | (bytes[i + 1] || 0) << 8 | (bytes[i + 2] || 0);
		s += symbols[bits >> 18] + symbols[bits >> 12 & 63];
		s += i + 1 < bytes.length ? symbols[bits >> 6 & 63] : "=";
		s += i + 2 < bytes.length ? symbols[bits & 63] : "=";
	}
	return s;
};
const bytesOfHex = (hex) => {
	const bytes = [];
	for (let i = 0; i < hex.length; i += 2) bytes[bytes.length] = parseInt(hex.slice(i, i + 2), 16);
	return bytes;
};

const theObjectId = type(class ObjectId {
	#hex;
	constructor(hex) {
		this.#hex = hex === undefined ? (Date.now() / 1000 | 0).toString(16).padStart(8, "0") + randomHex(16) : hexOf(hex, 24);
		defineProperty(this, "str", { value: this.#hex, enumerable: true });
	}
	static is(o) { return #hex in o; }
	static parts(o) { return `"oid","v":"${o.#hex}"`; }
	equals(o) { return text(this) === text(o); }
	getTimestamp() { return new dateOf(parseInt(this.#hex.slice(0, 8), 16) * 1000); }
	valueOf() { return this.#hex; }
	toString() { return `ObjectId("${this.#hex}")`; }
});
const theLong = type(class NumberLong {
	#n;
	constructor(v = 0) {
		this.#n = typeof v === "bigint" || typeof v === "string" ? whole(v) : whole(Math.trunc(number(v)));
		if (wrap(64, this.#n) !== this.#n) throw new Error("could not convert to long");
	}
	static is(o) { return #n in o; }
	static parts(o) { return `"long","v":"${o.#n}"`; }
	get floatApprox() { return number(this.#n); }
	toNumber() { return number(this.#n); }
	valueOf() { return number(this.#n); }
	compare(o) { const d = this.#n - new theLong(o instanceof NumberLong ? text(o.#n) : o).#n; return d < 0n ? -1 : d > 0n ? 1 : 0; }
	toString() { const n = this.#n; return -0x80000000n <= n && n <= 0x7fffffffn ? `NumberLong(${n})` : `NumberLong("${n}")`; }
});
const theInt = type(class NumberInt {
	#n;
	constructor(v = 0) { this.#n = number(v) | 0; }
	static is(o) { return #n in o; }
	static parts(o) { return `"int","v":${o.#n}`; }
	toNumber() { return this.#n; }
	valueOf() { return this.#n; }
	toString() { return `NumberInt(${this.#n})`; }
});
const theDecimal = type(class NumberDecimal {
	#s;
	constructor(v = "0") { this.#s = typeof v === "string" ? v : text(number(v)); }
	static is(o) { return #s in o; }
	static parts(o) { return `"decimal","v":${stringify(o.#s)}`; }
	toString() { return `NumberDecimal("${this.#s}")`; }
});
const theBinary = type(class BinData {
	#type; #base64;
	constructor(type, base64) {
		this.#type = number(type) & 255;
		this.#base64 = base64Of(bytesOf(text(base64)));
	}
	static is(o) { return #type in o; }
	static parts(o) { return `"binary","t":${o.#type},"v":"${o.#base64}"`; }
	get type() { return this.#type; }
	subtype() { return this.#type; }
	get len() { return bytesOf(this.#base64).length; }
	length() { return this.len; }
	base64() { return this.#base64; }
	hex() { return bytesOf(this.#base64).map((b) => b.toString(16).padStart(2, "0")).join(""); }
	toString() { return `BinData(${this.#type},"${this.#base64}")`; }
});
const ofHex = (type, hex) => new theBinary(type, base64Of(bytesOfHex(hex)));
global("HexData", (type, hex) => ofHex(type, hexOf(hex, text(hex).length & ~1)));
global("UUID", (hex) => ofHex(4, hex === undefined ? randomHex(32) : hexOf(text(hex).replace(/-/g, ""), 32)));
global("MD5", (hex) => ofHex(5, hexOf(hex, 32)));
const theTimestamp = type(class Timestamp {
	#t; #i;
	constructor(t = 0, i = 0) { this.#t = number(t) >>> 0; this.#i = number(i) >>> 0; }
	static is(o) { return #t in o; }
	static parts(o) { return `"timestamp","t":${o.#t},"v":${o.#i}`; }
	get t() { return this.#t; }
	get i() { return this.#i; }
	getTime() { return this.#t; }
	getInc() { return this.#i; }
	toString() { return `Timestamp(${this.#t}, ${this.#i})`; }
});
const theKey = (name, kind) => type({ [name]: class {
	#key;
	static is(o) { return #key in o; }
	static parts() { return `"${kind}"`; }
	toString() { return name; }
} }[name]);
const theMinKey = theKey("MinKey", "min"), theMaxKey = theKey("MaxKey", "max");
const theCode = type(class Code {
	constructor(code, scope) { this.code = text(code); if (scope !== undefined) this.scope = scope; }
	static is(o) { return o instanceof theCode; }
	static parts(o, depth) {
		return `"code","v":${stringify(text(o.code))}` + (o.scope === undefined ? "" : `,"s":${write(o.scope, depth)}`);
	}
	toString() { return `Code(${stringify(this.code)})`; }
});
// What scripts can only hand on.
class Opaque {
	#parts;
	constructor(parts) { this.#parts = parts; }
	static is(o) { return #parts in o; }
	static parts(o) { return o.#parts; }
}
const types = [theObjectId, theLong, theInt, theDecimal, theBinary, theTimestamp, theMinKey, theMaxKey, theCode, Opaque];
const typeOf = (o) => { for (let i = 0; i < types.length; i++) if (types[i].is(o)) return types[i]; };
const timeIn = (o) => { try { return apply(timeOf, o, []); } catch { return undefined; } };

global("ISODate", (t) => {
	const date = t === undefined ? new dateOf() : new dateOf(/^\d{4}-\d\d-\d\d$|[zZ]$|[+-]\d\d:?\d\d$/.test(t) ? t : t + "Z");
	if (isNaN(timeIn(date))) throw new Error("invalid ISO date: " + t);
	return date;
});
global("DBRef", function DBRef(ref, id, db) {
	const o = new.target ? this : create(DBRef.prototype);
	o.$ref = ref; o.$id = id;
	if (db !== undefined) o.$db = db;
	return o;
});

// ints has the fields of objects that were read as an int32: one that is still the
// same is written as one, though a number of JavaScript is a double.
const ints = new WeakMap(), intsOf = ints.get.bind(ints), noteInts = ints.set.bind(ints);
// patterns has the regular expressions that were read, as they were written.
const patterns = new WeakMap(), patternOf = patterns.get.bind(patterns), notePattern = patterns.set.bind(patterns);
const read = (v) => {
	if (v === null || typeof v !== "object") return v;
	if (v[tag] !== undefined) return made(v);
	const names = isArray(v) ? undefined : keys(v), n = names ? names.length : v.length;
	let fields;
	for (let i = 0; i < n; i++) {
		const name = names ? names[i] : i, old = v[name];
		if (old === null || typeof old !== "object") continue;
		const value = read(old);
		if (old[tag] === "int") (fields ||= create(null))[name] = value;
		if (name === "__proto__") defineProperty(v, name, { value, writable: true, configurable: true, enumerable: true });
		else v[name] = value;
	}
	if (fields) noteInts(v, fields);
	return v;
};
const made = ({ [tag]: kind, t, v, s }) => {
	switch (kind) {
	case "int": return v;
	case "double": return number(v);
	case "long": return new theLong(v);
	case "decimal": return new theDecimal(v);
	case "oid": return new theObjectId(v);
	case "date": return new dateOf(v);
	case "binary": return new theBinary(t, v);
	case "timestamp": return new theTimestamp(t, v);
	case "code": return new theCode(v, s && read(s));
	case "min": return new theMinKey();
	case "max": return new theMaxKey();
	case "undefined": return undefined;
	case "regexp":
		try {
			const r = new regExpOf(v, t.replace(/[^ims]/g, ""));
			notePattern(r, { source: v, flags: t });
			return r;
		} catch {} // the engine does not know the syntax
	}
	return new Opaque(stringify(kind) + (t === undefined ? "" : `,"t":${stringify(t)}`) + `,"v":${stringify(v)}`);
};
const tagged = (parts) => `{"\\u0000":${parts}}`;
const write = (v, depth, wasInt) => {
	switch (typeof v) {
	case "undefined": return tagged('"undefined"');
	case "boolean": return text(v);
	case "string": return stringify(v);
	case "number":
		if (wasInt) return tagged(`"int","v":${v}`);
		return isFinite(v) && !is(v, -0) ? text(v) : tagged(`"double","v":"${is(v, -0) ? "-0" : v}"`);
	case "function":
		if (v === globalThis.MinKey) return tagged('"min"');
		if (v === globalThis.MaxKey) return tagged('"max"');
		return tagged(`"code","v":${stringify(apply(sourceOf, v, []))}`);
	case "object": break;
	default: throw new TypeError(`a ${typeof v} is no value of BSON`);
	}
	if (v === null) return "null";
	if (depth > 150) throw new Error("the value is nested too deeply");
	const type = typeOf(v);
	if (type) return tagged(type.parts(v, depth + 1));
	const time = timeIn(v);
	if (time !== undefined) {
		if (isNaN(time)) throw new Error("invalid date");
		return tagged(`"date","v":${time}`);
	}
	if (v instanceof regExpOf) {
		const { source, flags } = patternOf(v) || { source: v.source, flags: v.flags.replace(/[^ims]/g, "") };
		return tagged(`"regexp","t":${stringify(text(flags))},"v":${stringify(text(source))}`);
	}
	const fields = intsOf(v);
	const same = (name) => fields !== undefined && fields[name] === v[name];
	let out = "";
	if (isArray(v)) {
		const n = bounded(v);
		for (let i = 0; i < n; i++) out += (i ? "," : "") + write(v[i], depth + 1, same(i));
		return "[" + out + "]";
	}
	const names = keys(v);
	for (let i = 0; i < names.length; i++) {
		out += (i ? "," : "") + stringify(names[i]) + ":" + write(v[names[i]], depth + 1, same(names[i]));
	}
	return "{" + out + "}";
};

const shown = (v, indent, line) => {
	if (v === undefined || v === null || typeof v === "boolean" || typeof v === "number") return text(v);
	if (typeof v === "string") return stringify(v);
	if (typeof v === "function") return apply(sourceOf, v, []);
	if (typeOf(v)) return v.toString();
	const time = timeIn(v);
	if (time !== undefined) return isNaN(time) ? 'ISODate("invalid")' : `ISODate("${new dateOf(time).toISOString().replace(".000Z", "Z")}")`;
	if (v instanceof regExpOf) return text(v);
	if (indent.length > 150) throw new Error("the value is nested too deeply");
	const inner = indent + "\t", parts = [];
	if (isArray(v)) for (let i = 0; i < bounded(v); i++) parts[i] = shown(v[i], inner, line);
	else for (const name of keys(v)) parts[parts.length] = stringify(name) + " : " + shown(v[name], inner, line);
	const [open, close] = isArray(v) ? "[]" : "{}";
	if (!parts.length) return isArray(v) ? "[ ]" : "{ }";
	return line ? `${open} ${parts.join(", ")} ${close}` : `${open}\n${inner}${parts.join(",\n" + inner)}\n${indent}${close}`;
};
global("tojson", (v, indent = "", line = false) => shown(v, text(indent), line));
global("tojsonObject", globalThis.tojson);
global("tojsononeline", (v) => shown(v, "", true));
for (const name of ["print", "printjson", "printjsononeline", "gc"]) global(name, () => {});
global("isNumber", (v) => typeof v === "number" || v instanceof theLong || v instanceof theInt || v instanceof theDecimal);
global("isString", (v) => typeof v === "string");
global("isObject", (v) => typeof v === "object");
global("sleep", (ms) => { sleepFor(number(ms)); });
global("hex_md5", (v) => md5(text(v)));
global("doassert", (message) => { throw new Error(typeof message === "object" ? shown(message, "", true) : text(message)); });
global("assert", (holds, message = "assert failed") => { if (!holds) globalThis.doassert(message); });
hide(Array, "sum", (list) => { let n = list.length ? list[0] : null; for (let i = 1; i < list.length; i++) n += list[i]; return n; });
hide(Array, "avg", (list) => list.length ? Array.sum(list) / list.length : null);
hide(Array, "contains", (list, v) => { for (let i = 0; i < list.length; i++) if (list[i] == v) return true; return false; });
hide(Array, "unique", (list) => { const u = []; for (let i = 0; i < list.length; i++) if (!Array.contains(u, list[i])) u.push(list[i]); return u; });

// emit is there while a function maps.
let emitted;
global("emit", (k, v) => {
	if (emitted === undefined) throw new Error("emit can only be called from a map function");
	emitted += (emitted && ",") + `{"k":${k === undefined ? "null" : write(k, 1)},"v":${write(v, 1)}}`;
});

// A function is its own text, an expression, or the body of a function.
const functions = new Map(), known = functions.get.bind(functions), keep = functions.set.bind(functions);
const comments = /^(?:\s|\/\/[^\n]*(?:\n|$)|\/\*[^]*?\*\/)+/;
const functionOf = (source) => {
	const code = source.replace(comments, "").replace(/[\s;]+$/, "");
	if (/^(?:async\s+)?function\b|^(?:async\s+)?(?:\([^()]*\)|[\w$]+)\s*=>/.test(code)) return everywhere(`(${code}\n)`);
	try {
		return compile(`return (${code}\n);`);
	} catch (e) {
		if (!(e instanceof SyntaxError)) throw e;
	}
	return compile(/\breturn\b/.test(code) ? code : `return eval(${stringify(code)});`);
};
const scopes = new Set(), entered = scopes.has.bind(scopes), enter = scopes.add.bind(scopes);

return (mode, source, scope, self, args) => {
	if (scope && !entered(scope)) {
		enter(scope);
		const variables = read(parse(scope)), names = keys(variables);
		for (let i = 0; i < names.length; i++) global(names[i], variables[names[i]]);
	}
	let f = known(source);
	if (f === undefined) keep(source, f = functionOf(source));
	if (typeof f !== "function") throw new TypeError("not a function");
	const object = self ? read(parse(self)) : {};
	switch (mode) {
	case "where":
		global("obj", object);
		return apply(f, object, []) ? "true" : "false";
	case "map":
		emitted = "";
		try {
			apply(f, object, []);
			return `[${emitted}]`;
		} finally {
			emitted = undefined;
		}
	}
	const given = read(parse(args));
	if (mode === "fold") {
		let state = given[0];
		for (let i = 0; i < given[1].length; i++) state = apply(f, object, [state, ...given[1][i]]);
		return write(state, 0);
	}
	return write(apply(f, object, given), 0);
};
})
