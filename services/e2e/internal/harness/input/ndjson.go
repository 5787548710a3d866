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
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

// maxLine bounds one event in bytes: MongoDB takes documents up to 16 MiB.
const maxLine = 15 << 20

// readNDJSON reads a JSON object a line.
func readNDJSON(r io.Reader, g *gathered) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		e, err := parse(line)
		if err != nil {
			g.bad(n, "%s", err)
			continue
		}
		g.add(n, e)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		g.bad(n+1, "is longer than %d bytes", maxLine)
		return nil
	}
	return lines.Err()
}

// parse reads one line.
func parse(line []byte) (orders.Event, error) {
	if !utf8.Valid(line) {
		return orders.Event{}, errors.New("is not valid UTF-8")
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal(line, &fields); err != nil {
		return orders.Event{}, fmt.Errorf("is not a JSON object: %w", err)
	}
	l := lineFields{fields: fields}
	e := orders.Event{
		Aggregate: l.text("aggregateId"),
		Type:      l.text("type"),
		Version:   l.version("version"),
		Time:      l.time("time"),
		Data:      l.data("data"),
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		l.bad("%s is not a field of an event", name)
	}
	if len(l.problems) > 0 {
		return orders.Event{}, errors.New(strings.Join(l.problems, "; "))
	}
	return e, nil
}

// lineFields takes fields out of a line and gathers what is wrong with them.
type lineFields struct {
	fields   map[string]json.RawMessage
	problems []string
}

func (l *lineFields) bad(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// take removes a field, which must be there.
func (l *lineFields) take(name string) (json.RawMessage, bool) {
	raw, found := l.fields[name]
	delete(l.fields, name)
	if !found || string(raw) == "null" {
		l.bad("%s is missing", name)
		return nil, false
	}
	return raw, true
}

func (l *lineFields) text(name string) string {
	raw, found := l.take(name)
	if !found {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || s == "" {
		l.bad("%s is %s, not a string with text", name, brief(raw))
	}
	return s
}

func (l *lineFields) version(name string) int64 {
	raw, found := l.take(name)
	if !found {
		return 0
	}
	var n int64
	if json.Unmarshal(raw, &n) != nil || n < 0 {
		l.bad("%s is %s, not a whole number from 0 on", name, brief(raw))
	}
	return n
}

func (l *lineFields) time(name string) time.Time {
	raw, found := l.take(name)
	if !found {
		return time.Time{}
	}
	var t time.Time
	if json.Unmarshal(raw, &t) != nil {
		l.bad("%s is %s, not an RFC 3339 time", name, brief(raw))
	}
	return t
}

// data reads the payload as relaxed Extended JSON, fields in their order.
func (l *lineFields) data(name string) any {
	raw, found := l.take(name)
	if !found {
		return nil
	}
	var doc bson.D
	if err := bson.UnmarshalExtJSON(raw, false, &doc); err != nil {
		l.bad("%s is %s, not a JSON object (%v)", name, brief(raw), err)
	}
	return doc
}

// brief cuts what a problem quotes.
func brief(raw []byte) string {
	const most = 40
	if text := []rune(string(raw)); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(raw)
}
