// Package input reads events that people bring themselves: a file of JSON objects,
// one a line, each with aggregateId, type, time, version and data; a table of
// comma-separated values; or an event log in XES, the format of IEEE 1849. A file
// whose name ends in .gz is unpacked.
//
// The whole file is checked before anything is done with it, so a mistake in
// its last line leaves no half of it in a database. What it says is the relay's to
// judge: an id that no session may have is read, and parked by the publisher.
package input

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

const (
	// mostProblems is how many lines at fault are told one by one.
	mostProblems = 20
	// maxDocument is the largest document that MongoDB takes, in bytes.
	maxDocument = 16 << 20
)

// Log is what a file holds.
type Log struct {
	// Events are the file's, in its order.
	Events []orders.Event
	lines  map[string]int // of each event's id
}

// Line is where the event of that id begins; 0 where there is none.
func (l Log) Line(id string) int { return l.lines[id] }

// LineError says what is wrong with a line of the file.
type LineError struct {
	File   string
	Line   int
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// ReadFile reads the file, by the ending of its name. fields says which fields of
// the lines, or columns of a table, are what. Where lines are at fault the error joins a *LineError for each of
// the first of them, and no events are returned with it.
func ReadFile(path string, fields Fields) (Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return Log{}, fmt.Errorf("read events: %w", err)
	}
	defer f.Close()
	if !strings.EqualFold(filepath.Ext(path), ".gz") {
		return Read(path, f, fields)
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return Log{}, fmt.Errorf("unpack %s: %w", path, err)
	}
	return Read(path, unpacked, fields)
}

// Read is ReadFile for what r reads; name is what it is called.
func Read(name string, r io.Reader, fields Fields) (Log, error) {
	g := &gathered{file: name, log: Log{lines: make(map[string]int)}, last: make(map[string]int64)}
	r, err := text(r)
	if err != nil {
		g.bad(1, "%s", err)
		return g.outcome()
	}
	switch kind := filepath.Ext(strings.TrimSuffix(strings.ToLower(name), ".gz")); {
	case kind == ".csv", kind == ".tsv", kind == ".tab":
		err = readTable(r, fields, g)
	case kind == ".xes" && fields != nil:
		return Log{}, fmt.Errorf("read events of %s: an event log in XES has names of its own for all parts", name)
	case kind == ".xes":
		err = readXES(r, g)
	default:
		err = readNDJSON(r, fields, g)
	}
	if err != nil {
		return Log{}, fmt.Errorf("read events of %s: %w", name, err)
	}
	return g.outcome()
}

// gathered is what was read so far, and what is wrong with it.
type gathered struct {
	file string
	log  Log
	last map[string]int64 // the last version of each aggregate
	// problems are of the first lines at fault, more is how many others are.
	problems []error
	more     int
}

// bad notes that a line is at fault.
func (g *gathered) bad(line int, format string, args ...any) {
	if len(g.problems) == mostProblems {
		g.more++
		return
	}
	g.problems = append(g.problems, &LineError{File: g.file, Line: line, Reason: fmt.Sprintf(format, args...)})
}

// add takes an event in whose version the file says. It must be above its aggregate's
// last one, and the event one that MongoDB can store.
func (g *gathered) add(line int, e orders.Event) {
	if before, found := g.last[e.Aggregate]; found && e.Version <= before {
		g.bad(line, "version %d of aggregate %q does not rise: the one before is %d", e.Version, e.Aggregate, before)
		return
	}
	document, err := bson.Marshal(source.Document(e))
	switch {
	case err != nil:
		g.bad(line, "cannot be stored: %s", err)
		return
	case len(document) > maxDocument:
		g.bad(line, "cannot be stored: it takes %d bytes, more than %d", len(document), maxDocument)
		return
	}
	g.last[e.Aggregate] = e.Version
	g.log.Events = append(g.log.Events, e)
	g.log.lines[e.ID()] = line
}

// number takes an event in whose version is its place among those of its aggregate.
func (g *gathered) number(line int, e orders.Event) {
	e.Version = g.last[e.Aggregate] + 1
	g.add(line, e)
}

func (g *gathered) outcome() (Log, error) {
	if len(g.problems) == 0 && len(g.log.Events) == 0 {
		g.bad(1, "there is no event in the file")
	}
	if g.more > 0 {
		g.problems = append(g.problems, fmt.Errorf("%s: %d more lines are at fault", g.file, g.more))
	}
	if len(g.problems) > 0 {
		return Log{}, errors.Join(g.problems...)
	}
	return g.log, nil
}
