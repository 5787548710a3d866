package modify

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func dotted(path []step) string {
	var b strings.Builder
	for i, s := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}

// steps gives the parts of a path, fields as texts and elements as numbers, and
// reports whether the dotted path does not tell them: where a field's name has
// a dot in it, or is a number and not the first part.
func steps(path []step) (parts bson.RawValue, ambiguous bool) {
	values := make([]bson.RawValue, len(path))
	for i, s := range path {
		if s.index {
			n, _ := strconv.Atoi(s.name)
			values[i] = bsonkit.Int32(int32(n))
			continue
		}
		values[i] = bsonkit.String(s.name)
		ambiguous = ambiguous || strings.Contains(s.name, ".") || i > 0 && isIndex(s.name)
	}
	return bsonkit.Array(values), ambiguous
}

// isIndex tells a name that could be an element's index: digits without a
// leading zero.
func isIndex(name string) bool {
	if name == "" || len(name) > 1 && name[0] == '0' {
		return false
	}
	return strings.Trim(name, "0123456789") == ""
}

// walked finds out which parts of a dotted path are elements of arrays.
func walked(path string, doc bson.Raw) []step {
	at := bsonkit.Document(doc)
	names := strings.Split(path, ".")
	found := make([]step, len(names))
	for i, name := range names {
		found[i] = step{name: name, index: at.Type == bson.TypeArray && isIndex(name)}
		if at.Type == bson.TypeArray || at.Type == bson.TypeEmbeddedDocument {
			at, _ = bsonkit.Get(at.Value, name)
		} else {
			at = bson.RawValue{}
		}
	}
	return found
}

// disambiguated are the parts of the ambiguous paths of operators' changes:
// {path: [part, …], …}; nil for none.
func disambiguated(before, after, updated bson.Raw, removed []string) bson.Raw {
	b, some := bsonkit.NewBuilder(nil), false
	add := func(path string, doc bson.Raw) {
		if !strings.ContainsAny(path, "0123456789") {
			return
		}
		if parts, ambiguous := steps(walked(path, doc)); ambiguous {
			b.Append(path, parts)
			some = true
		}
	}
	for it := bsonkit.Iterate(updated); it.Next(); {
		add(string(it.Key()), after)
	}
	for _, path := range removed {
		add(path, before)
	}
	if !some {
		return nil
	}
	return b.Finish()
}
