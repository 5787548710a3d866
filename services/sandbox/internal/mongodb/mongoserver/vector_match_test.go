package mongoserver_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// dropped are the fields of a reply that are never compared.
var dropped = []string{
	"$clusterTime", "operationTime", "electionId", "opTime", "topologyVersion", "localTime", "connectionId",
	"lastWrite", "lastCommittedOpTime", "optimes", "recoveryToken", "atClusterTime", "$gleStats",
	"$configServerState", "$topologyTime", "$oplogQueryData", "$replData",
}

// ofFailure are the fields that are compared in a reply with ok: 0.
var ofFailure = []string{"ok", "code", "codeName", "errmsg", "errorLabels", "keyPattern", "keyValue"}

// normalise drops from a reply what is not to be compared.
func (s vectorStep) normalise(reply tree) tree {
	failed := reply.failed()
	reply.object = slices.DeleteFunc(slices.Clone(reply.object), func(f field) bool {
		return slices.Contains(dropped, f.key) || failed && !slices.Contains(ofFailure, f.key)
	})
	for _, path := range s.Drop {
		reply = reply.without(strings.Split(path, "."))
	}
	if len(s.Only) > 0 && !failed {
		reply = reply.only(s.Only)
	}
	return reply
}

// failed tells a reply with ok: 0.
func (t tree) failed() bool {
	ok, there := t.at("ok.$numberDouble")
	return there && ok.scalar == "0.0"
}

// without removes what a path leads to; * is any one step.
func (t tree) without(path []string) tree {
	if t.isArray() {
		out := tree{array: slices.Clone(t.array)}
		for i, element := range out.array {
			if len(path) > 1 && (path[0] == "*" || path[0] == fmt.Sprint(i)) {
				out.array[i] = element.without(path[1:])
			}
		}
		return out
	}
	out := tree{object: []field{}, scalar: t.scalar}
	for _, f := range t.object {
		if path[0] != "*" && path[0] != f.key {
			out.object = append(out.object, f)
			continue
		}
		if len(path) > 1 {
			f.value = f.value.without(path[1:])
			out.object = append(out.object, f)
		}
	}
	if t.object == nil {
		return t
	}
	return out
}

// only keeps what the paths lead to.
func (t tree) only(paths []string) tree {
	if t.isArray() {
		out := tree{array: []tree{}}
		for i, element := range t.array {
			if below := belowKey(paths, fmt.Sprint(i)); below != nil {
				out.array = append(out.array, element.onlyBelow(below))
			}
		}
		return out
	}
	out := tree{object: []field{}}
	for _, f := range t.object {
		if below := belowKey(paths, f.key); below != nil {
			out.object = append(out.object, field{f.key, f.value.onlyBelow(below)})
		}
	}
	return out
}

func (t tree) onlyBelow(paths []string) tree {
	if slices.Contains(paths, "") {
		return t
	}
	return t.only(paths)
}

// belowKey gives the rests of the paths that begin with a key; nil for none.
func belowKey(paths []string, key string) []string {
	var below []string
	for _, path := range paths {
		head, rest, _ := strings.Cut(path, ".")
		if head == key || head == "*" {
			below = append(below, rest)
		}
	}
	return below
}

// comparison compares a reply with a recorded one.
type comparison struct {
	variables map[string]tree
	// unordered are paths of documents whose order of fields does not count.
	unordered []string
	// events tells that documents in batches are change events.
	events bool
}

// alwaysUnordered are the parts of a reply that the server itself writes.
var alwaysUnordered = []string{
	"", "cursor", "lastErrorObject", "writeErrors.*", "writeConcernError", "upserted.*",
}

// eventParts are the unordered parts of a change event.
var eventParts = []string{"", ".ns", ".to", ".lsid", ".updateDescription", ".updateDescription.updatedFields"}

func (c comparison) isUnordered(path string) bool {
	matches := func(pattern string) bool {
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `[^.]+`)
		return regexp.MustCompile("^" + quoted + "$").MatchString(path)
	}
	if slices.ContainsFunc(alwaysUnordered, matches) || slices.ContainsFunc(c.unordered, matches) {
		return true
	}
	return c.events && slices.ContainsFunc(eventParts, func(part string) bool {
		return matches("cursor.firstBatch.*"+part) || matches("cursor.nextBatch.*"+part)
	})
}

// differ returns where and how got is not what was recorded; "" for nowhere.
func (c comparison) differ(path string, want, got tree) string {
	if special, ok := c.special(path, want, got); ok {
		return special
	}
	unlike := func() string { return fmt.Sprintf("%s: got %s, want %s", path, got, want) }
	switch {
	case want.isObject() && got.isObject():
		return c.differObjects(path, want, got)
	case want.isArray() && got.isArray():
		if len(want.array) != len(got.array) {
			return unlike()
		}
		for i := range want.array {
			if d := c.differ(join(path, fmt.Sprint(i)), want.array[i], got.array[i]); d != "" {
				return d
			}
		}
		return ""
	case want.isObject() != got.isObject() || want.isArray() != got.isArray() || want.scalar != got.scalar:
		return unlike()
	}
	return ""
}

func (c comparison) differObjects(path string, want, got tree) string {
	if len(want.object) != len(got.object) {
		return fmt.Sprintf("%s: got fields %s, want %s", path, keysOf(got), keysOf(want))
	}
	for i, f := range want.object {
		value, there := got.get(f.key)
		if !there || !c.isUnordered(path) && got.object[i].key != f.key {
			return fmt.Sprintf("%s: got fields %s, want %s", path, keysOf(got), keysOf(want))
		}
		if d := c.differ(join(path, f.key), f.value, value); d != "" {
			return d
		}
	}
	return ""
}

func keysOf(t tree) []string {
	var keys []string
	for _, f := range t.object {
		keys = append(keys, f.key)
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// special compares with a matcher or a saved value.
func (c comparison) special(path string, want, got tree) (difference string, special bool) {
	if len(want.object) != 1 {
		return "", false
	}
	switch f := want.object[0]; f.key {
	case "$var":
		name := f.value.scalar.(string)
		saved, there := c.variables[name]
		if !there {
			return fmt.Sprintf("%s: nothing was saved as %s", path, name), true
		}
		return c.differ(path, saved, got), true
	case "$$match":
		name := f.value.scalar.(string)
		if !matchesKind(name, got) {
			return fmt.Sprintf("%s: got %s, want a value that matches %s", path, got, name), true
		}
		return "", true
	}
	return "", false
}

// nearNow is how far a matched time may be off the clock.
const nearNow = 48 * time.Hour

func matchesKind(name string, got tree) bool {
	single := func(key string) (tree, bool) {
		if len(got.object) != 1 {
			return tree{}, false
		}
		return got.get(key)
	}
	switch name {
	case "any":
		return true
	case "string":
		_, is := got.scalar.(string)
		return is && got.object == nil
	case "timestamp":
		seconds, ok := got.at("$timestamp.t")
		n, isNumber := seconds.scalar.(json.Number)
		at, err := n.Int64()
		return ok && isNumber && err == nil && time.Since(time.Unix(at, 0)).Abs() < nearNow
	case "date":
		ms, ok := got.at("$date.$numberLong")
		var at int64
		_, err := fmt.Sscan(fmt.Sprint(ms.scalar), &at)
		return ok && err == nil && time.Since(time.UnixMilli(at)).Abs() < nearNow
	case "objectId":
		_, ok := single("$oid")
		return ok
	case "uuid":
		binary, ok := single("$binary")
		subtype, _ := binary.get("subType")
		return ok && subtype.scalar == "04"
	case "resumeToken":
		return len(got.object) > 0 && got.object[0].key == "_data" && isHex(got.object[0].value.scalar)
	case "long":
		n, ok := single("$numberLong")
		return ok && n.scalar != "0"
	case "type:array":
		return got.isArray()
	case "type:object":
		return got.isObject()
	case "type:int":
		_, ok := single("$numberInt")
		return ok
	case "type:double":
		_, ok := single("$numberDouble")
		return ok
	}
	return false
}

func isHex(v any) bool {
	text, ok := v.(string)
	return ok && regexp.MustCompile("^[0-9A-F]+$").MatchString(text)
}
