package input

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

func line(aggregate, version string) string {
	return `{"aggregateId":"` + aggregate + `","type":"Happened","version":` + version + `,"time":"2026-03-01T12:00:00Z","data":{"n":1,"a":{"b":[true]}}}`
}

func TestInput_AGoodFileIsReadInItsOrder(t *testing.T) {
	t.Parallel()
	log, err := Read("f", strings.NewReader("\ufeff"+line("b", "7")+"\n\n"+line("a", "0")+"\r\n"+line("b", "9")), nil)
	if err != nil {
		t.Fatal(err)
	}
	data := bson.D{{Key: "n", Value: int32(1)}, {Key: "a", Value: bson.D{{Key: "b", Value: bson.A{true}}}}}
	event := func(aggregate string, version int64) orders.Event {
		return orders.Event{Aggregate: aggregate, Version: version, Type: "Happened", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Data: data}
	}
	if want := []orders.Event{event("b", 7), event("a", 0), event("b", 9)}; !reflect.DeepEqual(log.Events, want) {
		t.Errorf("events:\ngot  %v\nwant %v", log.Events, want)
	}
	for i, want := range []int{1, 3, 4} {
		if got := log.Line(log.Events[i].ID()); got != want {
			t.Errorf("line of event %d: got %d, want %d", i, got, want)
		}
	}
}

func TestInput_AllLinesAtFaultAreToldAtOnceUpToABound(t *testing.T) {
	t.Parallel()
	_, err := Read("f", strings.NewReader(strings.Repeat("x\n"+line("a", "1")+"\n", 50)), nil)
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != mostProblems+1 || !strings.HasPrefix(lines[0], "f:1: ") || !strings.HasPrefix(lines[2], "f:4: version 1") {
		t.Errorf("got %q, want the first %d lines at fault, of which the third is line 4", err, mostProblems)
	}
	if got, want := lines[len(lines)-1], "f: 79 more lines are at fault"; got != want {
		t.Errorf("last line: got %q, want %q", got, want)
	}
}

// What no broker takes is the publisher's to park, with its reason.
func TestInput_WhatTheRelayParksIsRead(t *testing.T) {
	t.Parallel()
	log, err := Read("f", strings.NewReader(line(strings.Repeat("😀", 100), "1")+"\n"+line(`a\tb\nc`, "1")), nil)
	if err != nil || len(log.Events) != 2 || log.Events[1].Aggregate != "a\tb\nc" {
		t.Errorf("got %v, %v, want both events", log.Events, err)
	}
}

func TestInput_ABadLineIsNamed(t *testing.T) {
	t.Parallel()
	good := line("a", "1") + "\n"
	tests := []struct {
		name string
		text string
		line int
		want []string
	}{
		{name: "not JSON", text: good + "{", line: 2, want: []string{"is not a JSON object"}},
		{name: "not an object", text: good + "[1]", line: 2, want: []string{"is not a JSON object: [1]"}},
		{name: "an array", text: "[" + good + "]", line: 1, want: []string{"each event has a line of its own"}},
		{name: "JSON of several lines", text: "{\n\"type\": 1\n}\n", line: 1, want: []string{"each event has a line of its own"}},
		{name: "UTF-16", text: "\xff\xfe{\x00}\x00", line: 1, want: []string{"iconv -f UTF-16"}},
		{name: "a packed file", text: "\x1f\x8b\x08\x00", line: 1, want: []string{"ends in .gz"}},
		{name: "a spreadsheet", text: "PK\x03\x04", line: 1, want: []string{"save it as CSV"}},
		{name: "everything missing is named at once", text: "{}", line: 1, want: []string{"aggregateId is missing", "type is missing", "time is missing", "; if fields have other names, say which, as in --fields aggregateId=FIELD,type=FIELD,time=FIELD"}},
		{name: "what the first line has is missing", text: good + `{"aggregateId":"b","type":"T","time":"2026-03-01"}`, line: 2, want: []string{"version is missing", "data is missing"}},
		{name: "null is missing", text: strings.Replace(good, `"a"`, `null`, 1), line: 1, want: []string{"aggregateId is missing"}},
		{name: "an empty aggregate id", text: line("", "1"), line: 1, want: []string{`aggregateId is "", not a string with text`}},
		{name: "an aggregate id of another type", text: strings.Replace(good, `"a"`, `1.5`, 1), line: 1, want: []string{"aggregateId is 1.5"}},
		{name: "a field that MongoDB cannot store", text: strings.Replace(good, `"n"`, `"n\u0000"`, 1), line: 1, want: []string{"cannot be stored", "null bytes"}},
		{name: "a version with a fraction", text: line("a", "1.5"), line: 1, want: []string{"version is 1.5, not a whole number"}},
		{name: "a negative version", text: line("a", "-1"), line: 1, want: []string{"version is -1"}},
		{name: "a version too large", text: line("a", "9223372036854775808"), line: 1, want: []string{"version is 9223372036854775808"}},
		{name: "a version that does not rise", text: good + line("b", "1") + "\n" + line("a", "1"), line: 3, want: []string{`version 1 of aggregate "a" does not rise: the one before is 1`}},
		{name: "a time in words", text: strings.Replace(good, "2026-03-01T12:00:00Z", "noon", 1), line: 1, want: []string{"time: noon is not a time as"}},
		{name: "data that is no object", text: strings.Replace(good, `{"n":1,"a":{"b":[true]}}`, "7", 1), line: 1, want: []string{"data is 7, not a JSON object"}},
		{name: "a field beside the data", text: strings.Replace(good, `"type"`, `"more":1,"type"`, 1), line: 1, want: []string{"more is not a field of an event", "--fields data=data"}},
		{name: "text that is not UTF-8", text: strings.Replace(good, "Happened", "\xff", 1), line: 1, want: []string{"is not valid UTF-8"}},
		{name: "an empty file", text: "\n\n", line: 1, want: []string{"there is no event in the file"}},
		{name: "a line beyond all bounds", text: good + strings.Repeat("x", maxLine+1), line: 2, want: []string{"is longer than"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log, err := Read("events.ndjson", strings.NewReader(tt.text), nil)
			bad := (*LineError)(nil)
			if !errors.As(err, &bad) {
				t.Fatalf("error: got %v, want a *LineError", err)
			}
			if bad.File != "events.ndjson" || bad.Line != tt.line {
				t.Errorf("place: got %s:%d, want events.ndjson:%d", bad.File, bad.Line, tt.line)
			}
			for _, want := range tt.want {
				if !strings.Contains(bad.Reason, want) {
					t.Errorf("reason: got %q, want it to say %q", bad.Reason, want)
				}
			}
			if log.Events != nil {
				t.Errorf("events: got %d, want none beside an error", len(log.Events))
			}
		})
	}
}

func TestInput_ReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	if _, err := ReadFile(path, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: got %v, want %v", err, os.ErrNotExist)
	}
	if err := os.WriteFile(path, []byte(line("a", "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if log, err := ReadFile(path, nil); err != nil || len(log.Events) != 1 {
		t.Errorf("a file of one event: got %v, %v", log.Events, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("f.ndjson", []byte(line("a", "1")+"\n"+line("a", "2")))
	f.Add("f", []byte(`{"aggregateId":"a","type":"t","version":1,"time":"2026-03-01T12:00:00Z","data":{"$date":"x"}}`))
	f.Add("f.csv", []byte("aggregateId;type;time;n\na;\"t\nu\";2026-03-01;0.5\n"))
	f.Add("f.xes", []byte(xesLog(`<string key="concept:name" value="c"/>`+xesStep("t", "2026-03-01T12:00:00+01:00", `<list key="l"><values><int key="i" value="1"/></values></list>`))))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		log, err := Read(name, strings.NewReader(string(text)), nil)
		if (err == nil) == (len(log.Events) == 0) {
			t.Fatalf("got %d events and error %v", len(log.Events), err)
		}
		for _, e := range log.Events {
			if e.Aggregate == "" || e.Version < 0 || e.Type == "" || log.Line(e.ID()) == 0 {
				t.Fatalf("accepted %+v", e)
			}
		}
	})
}
