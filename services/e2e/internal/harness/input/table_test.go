package input

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

func fields(t *testing.T, text string) Fields {
	t.Helper()
	c, err := ParseFields(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTable_RowsAreNumberedWithinTheirAggregate(t *testing.T) {
	t.Parallel()
	text := "\ufefforder id;activity;at;total;code;gift;note\r\n" +
		"Köln 7;Placed;2026-03-01T12:00:00+01:00;1;007;true;\r\n" +
		"b;Placed;2026-03-01 12:00:00.5;0.5;8;;\"two\nlines\"\r\n" +
		"Köln 7;Paid;2026-03-01;;;false;\r\n"
	log, err := Read("f.csv", strings.NewReader(text), fields(t, "aggregateId=order id,type=activity,time=at"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(hour, milliseconds int) time.Time {
		return time.Date(2026, 3, 1, hour, 0, 0, milliseconds*1e6, time.UTC)
	}
	want := []orders.Event{
		{Aggregate: "Köln 7", Version: 1, Type: "Placed", Time: at(11, 0), Data: bson.D{{Key: "total", Value: 1.0}, {Key: "code", Value: "007"}, {Key: "gift", Value: true}}},
		{Aggregate: "b", Version: 1, Type: "Placed", Time: at(12, 500), Data: bson.D{{Key: "total", Value: 0.5}, {Key: "code", Value: "8"}, {Key: "note", Value: "two\nlines"}}},
		{Aggregate: "Köln 7", Version: 2, Type: "Paid", Time: at(0, 0), Data: bson.D{{Key: "gift", Value: false}}},
	}
	for i := range log.Events {
		log.Events[i].Time = log.Events[i].Time.UTC()
	}
	if !reflect.DeepEqual(log.Events, want) {
		t.Errorf("events:\ngot  %v\nwant %v", log.Events, want)
	}
	if got := log.Line(want[2].ID()); got != 5 {
		t.Errorf("line of the last row: got %d, want 5, behind the value of two lines", got)
	}
}

func TestTable_ColumnsHaveTheirUsualNames(t *testing.T) {
	t.Parallel()
	log, err := Read("f.csv", strings.NewReader("case:concept:name,concept:name,time:timestamp\nc,A,2026-03-01 12:00\n"), nil)
	if err != nil || len(log.Events) != 1 || log.Events[0].Aggregate != "c" || log.Events[0].Type != "A" {
		t.Errorf("got %v, %v, want the event A of c", log.Events, err)
	}
	log, err = Read("f.csv", strings.NewReader("Case_ID,timestamp,Resource,Activity,type,Complete Timestamp\nc,1772359200,r,x,A,noon\n"), nil)
	if err != nil || len(log.Events) != 1 || log.Events[0].Aggregate != "c" || log.Events[0].Type != "A" || log.Events[0].Time.Unix() != 1772359200 {
		t.Errorf("got %v, %v, want the event A of c, from the first of the usual names", log.Events, err)
	}
	log, err = Read("f.tsv", strings.NewReader("aggregateId\ttype\ttime\tversion\nc\tA\t2026-03-01\t7\n"), nil)
	if err != nil || len(log.Events) != 1 || log.Events[0].Version != 7 {
		t.Errorf("got %v, %v, want version 7", log.Events, err)
	}
}

func TestTable_WhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	const header = "aggregateId,type,time,version\n"
	tests := []struct {
		name, text, said string
		want             []string
	}{
		{name: "columns that are missing", text: "id,type\n", want: []string{
			"f.csv:1: no column is aggregateId, time among id, type: name them, as in --fields aggregateId=COLUMN,time=COLUMN",
		}},
		{name: "an encoding of Western Europe", text: header + "a,gr\xf6\xdfer,2026-03-01,1\nb,,2026-03-01,1\n", want: []string{
			"f.csv:2: is not valid UTF-8; for a file of Windows", "f.csv:3: type is empty",
		}},
		{name: "a header of Western Europe", text: "aggregateId,type,time,gr\xf6\xdfe\n", want: []string{"f.csv:1: is not valid UTF-8"}},
		{name: "a date of which nobody knows the month", text: header + "a,b,1/2/2026,1\n", want: []string{"f.csv:2: time: 1/2/2026 is not a time as"}},
		{name: "a column that was named and is not there", text: header, said: "type=what", want: []string{"there is no what among the columns aggregateId, type"}},
		{name: "a column that is there twice", text: "aggregateId,type,time,x,x\n", want: []string{`the column "x" is there twice`}},
		{name: "every row at fault", text: header + "a,,2026-03-01,1\na,b,noon,1\na,b,2026-03-01\na,b,2026-03-01,x\nb,b,2026-03-01,2\nb,b,2026-03-01,2\n", want: []string{
			"f.csv:2: type is empty", "f.csv:3: time: noon is not a time as", "f.csv:4: has 3 values, and the header 4",
			"f.csv:5: version is x, not a whole number", `f.csv:7: version 2 of aggregate "b" does not rise`,
		}},
		{name: "a quote in a value", text: header + "a\"b,c,2026-03-01,1\nd,,2026-03-01,1\n", want: []string{"f.csv:2: is no row of values", "f.csv:3: type is empty"}},
		{name: "no row", text: header, want: []string{"there is no event in the file"}},
		{name: "nothing at all", want: []string{"there is no event in the file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read("f.csv", strings.NewReader(tt.text), fields(t, tt.said))
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

func TestFields_MustNameParts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"id=x", "type", "type="} {
		if _, err := ParseFields(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
	for name, text := range map[string]string{
		"f.xes": xesLog(`<string key="concept:name" value="c"/>` + xesStep("t", "2026-03-01T12:00:00+01:00", "")),
		"f.csv": "aggregateId,type,time\na,b,2026-03-01\n",
	} {
		if _, err := Read(name, strings.NewReader(text), nil); err != nil {
			t.Errorf("%s without fields: got %v", name, err)
		}
		if _, err := Read(name, strings.NewReader(text), fields(t, "data=x")); err == nil {
			t.Errorf("data of %s: got no error", name)
		}
	}
}

func TestTable_KindOfValue(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]kind{
		"0": whole, "-7": whole, "007": words, "+1": words, "9223372036854775808": words, "0.5": fraction, "-0.50": fraction,
		"00.5": words, ".5": words, "5.": words, "1e3": words, "NaN": words, "true": boolean, "True": words, "1.2.3": words, "-": words,
	} {
		if got := kindOfValue(value); got != want {
			t.Errorf("%q: got kind %d, want %d", value, got, want)
		}
	}
}
