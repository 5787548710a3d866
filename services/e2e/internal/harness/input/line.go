package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// lineFields takes the parts of an event out of the fields of a line, and gathers what
// is wrong with them. Values are relaxed Extended JSON, as mongoexport writes it.
type lineFields struct {
	fields   map[string]json.RawMessage
	parts    Fields
	problems []string
	nameless []string // parts under whose own names there is nothing
}

func (l *lineFields) bad(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// raw is the field that is the part, which must be there: one of that name, or where
// there is none, the one at that path.
func (l *lineFields) raw(part string) (json.RawMessage, bool) {
	name := l.parts[part]
	raw, found := at(l.fields, name)
	if found && string(raw) != "null" {
		return raw, true
	}
	if name == part {
		l.bad("%s is missing", name)
		l.nameless = append(l.nameless, part+"=FIELD")
	} else {
		l.bad("%s is missing, which is %s", name, part)
	}
	return nil, false
}

// at is the field of that name or, where there is none, at that path.
func at(fields map[string]json.RawMessage, name string) (json.RawMessage, bool) {
	if raw, found := fields[name]; found {
		return raw, true
	}
	first, rest, nested := strings.Cut(name, ".")
	inner := make(map[string]json.RawMessage)
	if !nested || json.Unmarshal(fields[first], &inner) != nil {
		return nil, false
	}
	return at(inner, rest)
}

// value is a field as MongoDB would store it; nil where it could not.
func value(raw json.RawMessage) any {
	var wrapped bson.D
	if bson.UnmarshalExtJSON(slices.Concat([]byte(`{"v":`), raw, []byte("}")), false, &wrapped) != nil || len(wrapped) != 1 {
		return nil
	}
	return wrapped[0].Value
}

// text reads a string, or an id that is a whole number or an ObjectID.
func (l *lineFields) text(part string) string {
	raw, found := l.raw(part)
	if !found {
		return ""
	}
	switch v := value(raw).(type) {
	case string:
		if v != "" {
			return v
		}
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case bson.ObjectID:
		return v.Hex()
	}
	l.bad("%s is %s, not a string with text", l.parts[part], brief(raw))
	return ""
}

func (l *lineFields) version() int64 {
	if l.parts[partVersion] == "" {
		return 0
	}
	raw, found := l.raw(partVersion)
	if !found {
		return 0
	}
	n := int64(-1)
	switch v := value(raw).(type) {
	case int32:
		n = int64(v)
	case int64:
		n = v
	}
	if n < 0 {
		l.bad("%s is %s, not a whole number from 0 on", l.parts[partVersion], brief(raw))
	}
	return n
}

func (l *lineFields) time() time.Time {
	raw, found := l.raw(partTime)
	if !found {
		return time.Time{}
	}
	text := string(raw) // digits, if it is a number
	switch v := value(raw).(type) {
	case bson.DateTime:
		return v.Time()
	case string:
		text = v
	}
	t, err := parseTime(text)
	if err != nil {
		l.bad("%s: %s", l.parts[partTime], err)
	}
	return t
}

// data reads the payload, fields in their order: the field that is it or, where there
// is none, whatever is no other part.
func (l *lineFields) data(line []byte) any {
	var doc bson.D
	name := l.parts[partData]
	if name == "" {
		if err := bson.UnmarshalExtJSON(line, false, &doc); err != nil {
			l.bad("is not Extended JSON (%v)", err)
		}
		taken := slices.Collect(maps.Values(l.parts))
		return slices.DeleteFunc(doc, func(e bson.E) bool { return slices.Contains(taken, e.Key) })
	}
	raw, found := l.raw(partData)
	if !found {
		return nil
	}
	switch err := bson.UnmarshalExtJSON(raw, false, &doc); {
	case err != nil && raw[0] != '{':
		l.bad("%s is %s, not a JSON object", name, brief(raw))
	case err != nil:
		l.bad("%s is %s, not Extended JSON (%v)", name, brief(raw), err)
	}
	return doc
}

// refuseOthers refuses fields beside the data, which would be lost.
func (l *lineFields) refuseOthers() {
	taken := slices.Collect(maps.Values(l.parts))
	for _, name := range slices.Sorted(maps.Keys(l.fields)) {
		if !slices.Contains(taken, name) {
			l.bad("%s is not a field of an event; with --fields data=%s it is left out", name, l.parts[partData])
		}
	}
}
