package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"changerelay/services/e2e/internal/harness/orders"
)

// maxLine bounds one event in bytes: MongoDB takes documents up to 16 MiB.
const maxLine = 15 << 20

// readNDJSON reads a JSON object a line. The first one says, as the header of a table
// does, which fields are the parts of events, and whether there are versions and data;
// the others must have the same.
func readNDJSON(r io.Reader, fields Fields, g *gathered) error {
	o := objects{said: fields}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if n == 1 && oneDocument(line) {
			g.bad(n, "begins JSON of several lines, or an array: each event has a line of its own, as jq -c '.[]?' makes of an array")
			return nil
		}
		e, err := o.event(line)
		switch {
		case err != nil:
			g.bad(n, "%s", err)
		case o.parts[partVersion] == "":
			g.number(n, e)
		default:
			g.add(n, e)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		g.bad(n+1, "is longer than %d bytes", maxLine)
		return nil
	}
	return lines.Err()
}

// oneDocument tells that a first line is the beginning of what takes more than one, or
// an array.
func oneDocument(line []byte) bool {
	return line[0] == '[' || string(line) == "{"
}

// objects are the lines while they are read.
type objects struct {
	said  Fields
	parts Fields // as said, or as the first line has them; nil before that
}

// event reads one line.
func (o *objects) event(line []byte) (orders.Event, error) {
	if !utf8.Valid(line) {
		return orders.Event{}, errors.New(notUTF8)
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal(line, &fields); err != nil {
		if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
			return orders.Event{}, fmt.Errorf("is not a JSON object: %s", brief(line))
		}
		return orders.Event{}, fmt.Errorf("is not a JSON object: %w", err)
	}
	first := o.parts == nil
	if first {
		o.find(fields)
	}
	l := lineFields{fields: fields, parts: o.parts}
	e := orders.Event{Aggregate: l.text(partAggregate), Type: l.text(partType), Version: l.version(), Time: l.time(), Data: l.data(line)}
	if o.parts[partData] != "" && o.said[partData] == "" {
		l.refuseOthers()
	}
	if first && len(l.nameless) > 0 {
		l.bad("if fields have other names, say which, as in --fields %s", strings.Join(l.nameless, ","))
	}
	if len(l.problems) > 0 {
		return orders.Event{}, errors.New(strings.Join(l.problems, "; "))
	}
	return e, nil
}

// find finds the parts of events among the fields of the first line. One that every
// event must have is looked for under its own name where it is not found.
func (o *objects) find(fields map[string]json.RawMessage) {
	o.parts = maps.Clone(o.said)
	if o.parts == nil {
		o.parts = Fields{}
	}
	names := slices.Sorted(maps.Keys(fields))
	for part, wanted := range usual {
		if o.parts[part] != "" {
			continue
		}
		if part != partVersion && part != partData {
			o.parts[part] = part
		}
		for _, want := range wanted {
			if at := slices.IndexFunc(names, func(name string) bool { return plain(name) == plain(want) }); at >= 0 {
				o.parts[part] = names[at]
				break
			}
		}
	}
}

// brief cuts what a problem quotes.
func brief(raw []byte) string {
	const most = 40
	if text := []rune(string(raw)); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(raw)
}
