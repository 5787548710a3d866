package input

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

func TestNDJSON_FieldsMayHaveOtherNames(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id, _ := bson.ObjectIDFromHex("65e1b2c3d4e5f60718293a4b")
	event := func(aggregate string, version int64, data bson.D) orders.Event {
		return orders.Event{Aggregate: aggregate, Version: version, Type: "Paid", Time: noon, Data: data}
	}
	tests := []struct {
		name, said, text string
		want             []orders.Event
	}{
		{
			name: "no data and no version", said: "aggregateId=orderId,type=event,time=at",
			text: `{"orderId":"o","event":"Paid","at":"2026-03-01 12:00:00","sum":7,"by":{"who":"x"}}` + "\n" +
				`{"orderId":"o","event":"Paid","at":"2026-03-01T13:00:00+01:00"}`,
			want: []orders.Event{
				event("o", 1, bson.D{{Key: "sum", Value: int32(7)}, {Key: "by", Value: bson.D{{Key: "who", Value: "x"}}}}),
				event("o", 2, bson.D{}),
			},
		},
		{
			name: "data of another name, and what is left out beside it", said: "aggregateId=stream,version=no,data=payload",
			text: `{"stream":12,"no":7,"type":"Paid","time":1772366400,"payload":{"n":1},"meta":{"trace":"x"}}`,
			want: []orders.Event{event("12", 7, bson.D{{Key: "n", Value: int32(1)}})},
		},
		{
			name: "parts in other objects, which stay in the data", said: "aggregateId=order.id,type=kind.name",
			text: `{"order":{"id":"o","n":1},"kind.name":"Paid","time":"2026-03-01T12:00:00Z"}`,
			want: []orders.Event{event("o", 1, bson.D{{Key: "order", Value: bson.D{{Key: "id", Value: "o"}, {Key: "n", Value: int32(1)}}}})},
		},
		{
			name: "what mongoexport writes", said: "data=data",
			text: `{"_id":{"$oid":"65e1b2c3d4e5f60718293a4c"},"aggregateId":{"$oid":"` + id.Hex() + `"},"type":"Paid",` +
				`"version":{"$numberLong":"3"},"time":{"$date":"2026-03-01T12:00:00Z"},"data":{"ref":{"$oid":"` + id.Hex() + `"}}}`,
			want: []orders.Event{event(id.Hex(), 3, bson.D{{Key: "ref", Value: id}})},
		},
		{
			name: "the usual names of event logs",
			text: `{"case_id":"o","Activity":"Paid","timestamp":"2026-03-01T12:00:00Z","cost":2}`,
			want: []orders.Event{event("o", 1, bson.D{{Key: "cost", Value: int32(2)}})},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log, err := Read("f.ndjson", strings.NewReader(tt.text), fields(t, tt.said))
			if err != nil {
				t.Fatal(err)
			}
			for i := range log.Events {
				log.Events[i].Time = log.Events[i].Time.UTC()
			}
			if !reflect.DeepEqual(log.Events, tt.want) {
				t.Errorf("events:\ngot  %+v\nwant %+v", log.Events, tt.want)
			}
		})
	}
}

func TestNDJSON_AFieldThatWasNamedAndIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Read("f.ndjson", strings.NewReader(line("a", "1")), fields(t, "aggregateId=order.id"))
	if want := "f.ndjson:1: order.id is missing, which is aggregateId"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want it to begin with %q", err, want)
	}
}
