package input

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

// xesLog is a log of one trace, with all that a log says of itself.
func xesLog(trace string) string {
	return `<?xml version="1.0" encoding="UTF-8" ?>
<log xes.version="1849.2016" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">
	<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
	<global scope="event"><string key="concept:name" value="__INVALID__"/></global>
	<classifier name="Activity" keys="concept:name"/>
	<string key="concept:name" value="the log"/>
	<trace>` + trace + `</trace>
</log>`
}

func xesStep(name, at, more string) string {
	return fmt.Sprintf("\n<event><string key=\"concept:name\" value=%q/><date key=\"time:timestamp\" value=%q/>%s</event>", name, at, more)
}

func TestXES_TracesAreAggregatesAndEventsTheirs(t *testing.T) {
	t.Parallel()
	text := xesLog(`<string key="concept:name" value="Fall 1 &amp; Größe"/><int key="amount" value="20"/>` +
		xesStep("A", "2026-03-01T12:00:00.123+01:00", `<string key="lifecycle:transition" value="complete"><string key="why" value="x"/></string>`) +
		xesStep("A", "2026-03-01T12:00:00.123+01:00", `<list key="l"><values><int key="i" value="1"/><int key="i" value="2"/></values></list>`+
			`<container key="c"><boolean key="b" value="true"/><float key="f" value="0.5"/></container><id key="id" value="u"/>`))
	log, err := Read("f.xes", strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	of := bson.E{Key: "case", Value: bson.D{{Key: "amount", Value: int64(20)}}}
	event := func(version int64, data ...bson.E) orders.Event {
		return orders.Event{Aggregate: "Fall 1 & Größe", Version: version, Type: "A", Time: time.Date(2026, 3, 1, 11, 0, 0, 123e6, time.UTC), Data: append(data, of)}
	}
	want := []orders.Event{
		event(1, bson.E{Key: "lifecycle:transition", Value: "complete"}),
		event(2,
			bson.E{Key: "l", Value: bson.A{bson.D{{Key: "i", Value: int64(1)}}, bson.D{{Key: "i", Value: int64(2)}}}},
			bson.E{Key: "c", Value: bson.D{{Key: "b", Value: true}, {Key: "f", Value: 0.5}}}, bson.E{Key: "id", Value: "u"}),
	}
	for i := range log.Events {
		log.Events[i].Time = log.Events[i].Time.UTC()
		log.Events[i].Data = bson.D(log.Events[i].Data.(bson.D))
		want[i].Data = bson.D(want[i].Data.([]bson.E))
	}
	if !reflect.DeepEqual(log.Events, want) {
		t.Errorf("events:\ngot  %v\nwant %v", log.Events, want)
	}
	if got := log.Line(want[1].ID()); got != 9 {
		t.Errorf("line of the second event: got %d, want 9", got)
	}
}

func TestXES_WhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	const name = `<string key="concept:name" value="c"/>`
	step := xesStep("A", "2026-03-01T12:00:00Z", "")
	tests := []struct {
		name, text string
		want       []string
	}{
		{name: "every event at fault", text: xesLog(name + step +
			"\n<event/>" + "\n<event><string key=\"concept:name\" value=\"A\"/></event>" +
			xesStep("A", "noon", "") + xesStep("A", "2026-03-01T12:00:00Z", `<int key="n" value="x"/>`) +
			xesStep("A", "2026-03-01T12:00:00Z", `<int key="n" value="1"/><int key="n" value="1"/>`)), want: []string{
			"f.xes:9: the event has no concept:name", "f.xes:10: the event has no time:timestamp that is a date",
			`f.xes:11: date "time:timestamp" is noon`, `f.xes:12: int "n" is x, and no value of that kind`, `f.xes:13: the attribute "n" is there twice`,
		}},
		{name: "a trace without a name", text: xesLog(step), want: []string{"f.xes:7: the trace has no concept:name"}},
		{name: "an event in no trace", text: "<log>" + step + "</log>", want: []string{"f.xes:2: the event is in no trace"}},
		{name: "an attribute where those of the trace are put", text: xesLog(name + `<int key="x" value="1"/>` + xesStep("A", "2026-03-01T12:00:00Z", `<int key="case" value="1"/>`)), want: []string{`attribute "case"`}},
		{name: "a file that was cut off", text: strings.TrimSuffix(xesLog(name+step), "</log>"), want: []string{"is not XML"}},
		{name: "containers without end", text: xesLog(name + strings.Repeat(`<container key="c">`, 100)), want: []string{"more than 16 deep"}},
		{name: "another encoding", text: `<?xml version="1.0" encoding="ISO-8859-1"?><log/>`, want: []string{"f.xes:1: is in ISO-8859-1, not UTF-8: iconv -f ISO-8859-1"}},
		{name: "no event", text: "<log/>", want: []string{"there is no event in the file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read("f.xes", strings.NewReader(tt.text), nil)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestXES_MayBePacked(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	fmt.Fprint(zip, xesLog(`<string key="concept:name" value="c"/>`+xesStep("A", "2026-03-01T12:00:00Z", "")))
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.xes.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if log, err := ReadFile(path, nil); err != nil || len(log.Events) != 1 {
		t.Errorf("got %v, %v, want one event", log.Events, err)
	}
}
