package input

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

// The parts of an event that a field or a column may be.
const (
	partAggregate = "aggregateId"
	partType      = "type"
	partTime      = "time"
	partVersion   = "version"
	partData      = "data" // of a table, all columns that are no part
)

// usual are the fields that a part is looked for in, in this order, where nobody says
// which; behind the first are those of event logs that were saved as tables. Capitals,
// spaces and underlines make no difference.
var usual = map[string][]string{
	partAggregate: {partAggregate, "case:concept:name", "caseid"},
	partType:      {partType, "concept:name", "activity"},
	partTime:      {partTime, "time:timestamp", "timestamp", "completetimestamp"},
	partVersion:   {partVersion},
	partData:      {partData},
}

// plain is a column's name without what makes no difference.
func plain(name string) string {
	return strings.NewReplacer(" ", "", "_", "").Replace(strings.ToLower(name))
}

// mostNames is how many columns a problem names.
const mostNames = 20

// table is a table while it is read.
type table struct {
	header []string
	parts  map[string]int // where they are in a row
	rows   [][]string
	lines  []int // where each row begins
}

// readTable reads comma-separated values; semicolons and tabs separate, too, where the
// header has more of them. The first line names the columns. Columns that are no part
// of an event are its data: numbers or booleans where all of the column are, texts
// otherwise; an empty one is left out.
func readTable(r io.Reader, fields Fields, g *gathered) error {
	rows, err := opened(r)
	if err != nil {
		return err
	}
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(header, func(name string) bool { return !utf8.ValidString(name) }) {
		g.bad(1, notUTF8)
		return nil
	}
	t := table{header: header}
	if problems := t.find(fields); len(problems) > 0 {
		g.bad(1, "%s", strings.Join(problems, "; "))
		return nil
	}
	if err := t.read(rows, g); err != nil {
		return err
	}
	t.events(g)
	return nil
}

// opened looks which character separates the values.
func opened(r io.Reader) (*csv.Reader, error) {
	text := bufio.NewReaderSize(r, 64<<10)
	start, err := text.Peek(text.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	rows := csv.NewReader(text)
	rows.FieldsPerRecord = -1
	for _, separator := range ";\t" {
		if bytes.Count(line, []byte(string(separator))) > bytes.Count(line, []byte(string(rows.Comma))) {
			rows.Comma = separator
		}
	}
	return rows, nil
}

// find finds the parts of events among the columns, and says what is wrong with those.
func (t *table) find(fields Fields) (problems []string) {
	t.parts = make(map[string]int)
	for i, name := range t.header {
		if name == "" {
			t.header[i] = fmt.Sprintf("column %d", i+1)
		}
		if slices.Index(t.header, t.header[i]) < i {
			problems = append(problems, fmt.Sprintf("the column %q is there twice", name))
		}
	}
	var missing []string
	for _, part := range []string{partAggregate, partType, partTime, partVersion} {
		at := t.column(part, fields[part])
		switch {
		case at >= 0:
			t.parts[part] = at
		case fields[part] != "":
			problems = append(problems, fmt.Sprintf("there is no %s among the columns %s", fields[part], t.names()))
		case part != partVersion:
			missing = append(missing, part)
		}
	}
	if fields[partData] != "" {
		problems = append(problems, "data are all columns that are no other part: no one column is named as that")
	}
	if len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("no column is %s among %s: name them, as in --fields %s=COLUMN",
			strings.Join(missing, ", "), t.names(), strings.Join(missing, "=COLUMN,")))
	}
	return problems
}

// column is where a part is, -1 where it is nowhere: under the name that was said, or
// under a usual one.
func (t *table) column(part, said string) int {
	if said != "" {
		return slices.Index(t.header, said)
	}
	for _, wanted := range usual[part] {
		if at := slices.IndexFunc(t.header, func(name string) bool { return plain(name) == plain(wanted) }); at >= 0 {
			return at
		}
	}
	return -1
}

// names are the columns, cut where they are many.
func (t *table) names() string {
	names := t.header
	if len(names) > mostNames {
		names = append(slices.Clone(names[:mostNames]), "…")
	}
	return strings.Join(names, ", ")
}

// read reads all rows, for the values of a column say together what they are.
func (t *table) read(rows *csv.Reader, g *gathered) error {
	for {
		row, err := rows.Read()
		wrong := (*csv.ParseError)(nil)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &wrong):
			g.bad(wrong.StartLine, "is no row of values: %s", wrong.Err)
			continue
		case err != nil:
			return err
		}
		line, _ := rows.FieldPos(0)
		if len(row) != len(t.header) {
			g.bad(line, "has %d values, and the header %d", len(row), len(t.header))
			continue
		}
		if slices.ContainsFunc(row, func(value string) bool { return !utf8.ValidString(value) }) {
			g.bad(line, notUTF8)
			continue
		}
		t.rows, t.lines = append(t.rows, row), append(t.lines, line)
	}
}

// events makes an event of each row.
func (t *table) events(g *gathered) {
	kinds := make([]kind, len(t.header))
	for i := range t.header {
		kinds[i] = t.kindOf(i)
	}
	parted := make([]bool, len(t.header))
	for _, at := range t.parts {
		parted[at] = true
	}
	for n, row := range t.rows {
		e, problems := t.event(row)
		if len(problems) > 0 {
			g.bad(t.lines[n], "%s", strings.Join(problems, "; "))
			continue
		}
		data := bson.D{}
		for i, text := range row {
			if !parted[i] && text != "" {
				data = append(data, bson.E{Key: t.header[i], Value: kinds[i].value(text)})
			}
		}
		e.Data = data
		if _, versioned := t.parts[partVersion]; versioned {
			g.add(t.lines[n], e)
		} else {
			g.number(t.lines[n], e)
		}
	}
}

// event reads the parts of a row.
func (t *table) event(row []string) (e orders.Event, problems []string) {
	part := func(name string) string {
		at := t.parts[name]
		if row[at] == "" {
			problems = append(problems, fmt.Sprintf("%s is empty, which is %s", t.header[at], name))
		}
		return row[at]
	}
	e = orders.Event{Aggregate: part(partAggregate), Type: part(partType)}
	var err error
	if text := part(partTime); text != "" {
		if e.Time, err = parseTime(text); err != nil {
			problems = append(problems, t.header[t.parts[partTime]]+": "+err.Error())
		}
	}
	if at, versioned := t.parts[partVersion]; versioned {
		if e.Version, err = strconv.ParseInt(row[at], 10, 64); err != nil || e.Version < 0 {
			problems = append(problems, fmt.Sprintf("%s is %s, not a whole number from 0 on", t.header[at], brief([]byte(row[at]))))
		}
	}
	return e, problems
}
