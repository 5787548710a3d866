package emulatorconfig

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"changerelay/services/sandbox/internal/servicebus/isoduration"
)

// object reads one JSON object and remembers which of its fields were asked
// for, so that the others can be refused. The problems of all objects of a file
// are collected in one list.
type object struct {
	path     string
	fields   map[string]any
	asked    []string
	problems *[]error
}

func (o *object) problem(field, format string, args ...any) {
	path := o.path
	if field != "" {
		path = join(o.path, field)
	}
	*o.problems = append(*o.problems, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// get returns a field; null counts as absent.
func (o *object) get(field string) (any, bool) {
	o.asked = append(o.asked, field)
	v := o.fields[field]
	return v, v != nil
}

// done refuses the fields nobody asked for.
func (o *object) done() {
	var unknown []string
	for field := range o.fields {
		if !slices.Contains(o.asked, field) {
			unknown = append(unknown, field)
		}
	}
	sort.Strings(unknown)
	for _, field := range unknown {
		o.problem(field, "unknown field")
	}
}

func (o *object) sub(field string) *object {
	v, ok := o.get(field)
	if !ok {
		return &object{path: join(o.path, field), problems: o.problems}
	}
	return o.as(field, v)
}

func (o *object) as(field string, v any) *object {
	fields, ok := v.(map[string]any)
	if !ok {
		o.problem(field, "not an object")
	}
	return &object{path: join(o.path, field), fields: fields, problems: o.problems}
}

func (o *object) list(field string) []*object {
	v, ok := o.get(field)
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		o.problem(field, "not an array")
		return nil
	}
	objects := make([]*object, len(items))
	for i, item := range items {
		objects[i] = o.as(fmt.Sprintf("%s[%d]", field, i), item)
	}
	return objects
}

func (o *object) text(field string) string {
	if s := o.optional(field); s != nil {
		return *s
	}
	return ""
}

func (o *object) optional(field string) *string {
	v, ok := o.get(field)
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		o.problem(field, "not a string")
		return nil
	}
	return &s
}

func (o *object) name() string {
	s := o.text("Name")
	if s == "" && o.fields != nil {
		o.problem("Name", "missing")
	}
	return s
}

func (o *object) flag(field string) bool {
	v, ok := o.get(field)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.problem(field, "not true or false")
	}
	return b
}

func (o *object) integer(field string) int32 {
	v, ok := o.get(field)
	if !ok {
		return 0
	}
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if err != nil || n < 1 || n > math.MaxInt32 {
		o.problem(field, "not a whole number from 1 on")
		return 0
	}
	return int32(n)
}

func (o *object) duration(field string) time.Duration {
	s := o.text(field)
	if s == "" {
		return 0
	}
	d, err := isoduration.Parse(s)
	if err != nil {
		o.problem(field, "%s", err)
		return 0
	}
	if d == 0 {
		o.problem(field, "a duration of zero")
	}
	return d
}
