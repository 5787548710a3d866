package expect

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/e2e/internal/harness/payload"
)

func document(t *testing.T, data bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(bson.D{
		{Key: "_id", Value: "o/1"},
		{Key: "aggregateId", Value: "o"},
		{Key: "version", Value: int32(1)},
		{Key: "type", Value: "T"},
		{Key: "time", Value: bson.DateTime(-1)},
		{Key: "data", Value: data},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// owed is the message of a document that holds the data.
func owed(t *testing.T, data bson.D) Message {
	t.Helper()
	m, err := Of("shop", "order events", document(t, data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOf_SaysEveryPartAsTheContractHasIt(t *testing.T) {
	t.Parallel()
	key, err := bson.Marshal(bson.D{{Key: "_id", Value: "o/1"}})
	if err != nil {
		t.Fatal(err)
	}
	id := contract.Identity{Database: "shop", Collection: "order events", DocumentKey: key, Operation: contract.Insert, Version: contract.VersionOf(1)}.MessageID()
	want := Message{
		MessageID: id, SessionID: "o", PartitionKey: "o", Label: "T", ContentType: "application/json", SpecVersion: `"1.0"`, ContractVersion: `"1"`,
		ID: `"` + id + `"`, Source: `"/shop/order%20events"`, Type: `"T"`, Subject: `"o"`, Operation: `"insert"`, Sequence: `"0000000000000000001"`,
		Version: "int64 1", Time: `"1969-12-31T23:59:59.999Z"`, DataSchema: none, Others: none, Data: `{"n":true,}`, Shown: none,
	}
	got := owed(t, bson.D{{Key: "n", Value: true}})
	want[Data] = got[Data]
	if got != want {
		t.Errorf("message:\ngot  %q\nwant %q", got, want)
	}
}

func TestOf_OwesDataInBSONWhereJSONKeepsAName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"plain": jsonContent, "a$": jsonContent, "$ref": jsonContent, "$oid": bsonContent, "$x": bsonContent} {
		for _, data := range []bson.D{
			{{Key: name, Value: 1}},
			{{Key: "in", Value: bson.D{{Key: name, Value: 1}}}},
			{{Key: "in", Value: bson.A{true, bson.D{{Key: name, Value: 1}}}}},
		} {
			if got := owed(t, data)[ContentType]; got != want {
				t.Errorf("%v: got %s, want %s", data, got, want)
			}
		}
	}
}

func TestOf_RefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	raw, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Of("shop", "events", raw); err == nil {
		t.Errorf("got message %q, want an error", m)
	}
}

// What the official driver writes is read back as what it was made of, whatever
// the payload; and another payload is told apart.
func TestSeen_ReadsAnyPayloadBack(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	other := owed(t, bson.D{{Key: "another", Value: 1.5}})
	for range 2000 {
		data := payload.New(rng, payload.AnyName)
		want := owed(t, data)
		write := func() ([]byte, error) { return bson.MarshalExtJSON(data, true, false) }
		if want[ContentType] == bsonContent {
			write = func() ([]byte, error) { return bson.Marshal(data) }
		}
		text, err := write()
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, _ = zip.Write(text)
		_ = zip.Close()
		for _, m := range []*azservicebus.ReceivedMessage{
			{Body: text, ContentType: &want[ContentType]},
			{Body: packed.Bytes(), ContentType: &want[ContentType], RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Properties: &azservicebus.AMQPAnnotatedMessageProperties{ContentEncoding: new("gzip")}}},
		} {
			if got := Seen(m); got[Data] != want[Data] || got[Data] == other[Data] {
				t.Fatalf("data of %s:\ngot  %s\nwant %s", text, got[Data], want[Data])
			}
		}
	}
}

// A body may be packed, whatever its document says; what else is said of it, or of when it
// comes, is nothing that is owed.
func TestSeen_NamesWhatNoMessageHas(t *testing.T) {
	t.Parallel()
	encoded := func(encoding string) *azservicebus.ReceivedMessage {
		return &azservicebus.ReceivedMessage{RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Properties: &azservicebus.AMQPAnnotatedMessageProperties{ContentEncoding: &encoding}}}
	}
	for want, m := range map[string]*azservicebus.ReceivedMessage{
		none:                     encoded("gzip"),
		"content-encoding":       encoded("deflate"),
		"scheduled-enqueue-time": {ScheduledEnqueueTime: new(time.Now())},
	} {
		if got := Seen(m)[Others]; got != want {
			t.Errorf("further properties: got %q, want %q", got, want)
		}
	}
}

func TestText_TellsValuesApart(t *testing.T) {
	t.Parallel()
	values := []any{
		nil, false, true, "", "0", "null", int32(0), int32(1), int64(0), int64(1), 0.0, 1.0, bson.DateTime(0), bson.DateTime(-1), bson.NewDecimal128(0, 0), bson.NewDecimal128(0, 1),
		bson.D{},
		bson.A{},
		bson.A{nil},
		bson.D{{Key: "", Value: nil}},
		bson.ObjectID{},
		bson.Binary{},
		bson.Binary{Subtype: 4},
		bson.Timestamp{},
		bson.Regex{},
		bson.A{"a", "b"},
		bson.A{"b", "a"},
	}
	seen := map[string]any{}
	for _, v := range values {
		raw, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := Text(raw, InOrder)
		if err != nil {
			t.Fatal(err)
		}
		if before, found := seen[text]; found {
			t.Errorf("%T %v and %T %v have the same text %s", v, v, before, before, text)
		}
		seen[text] = v
	}
}

func TestText_KnowsTheOrderOfFieldsWhereItCounts(t *testing.T) {
	t.Parallel()
	one, err := bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "x", Value: 1.5}, {Key: "y", Value: 2.5}}}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "y", Value: 2.5}, {Key: "x", Value: 1.5}}}})
	if err != nil {
		t.Fatal(err)
	}
	for order, same := range map[FieldOrder]bool{InOrder: false, AnyOrder: true} {
		a, errA := Text(one, order)
		b, errB := Text(two, order)
		if errA != nil || errB != nil || (a == b) != same {
			t.Errorf("order counts %v: got %s and %s, %v, %v; want them equal: %v", order, a, b, errA, errB, same)
		}
	}
}

func TestPrint_NamesThePartsThatDiffer(t *testing.T) {
	t.Parallel()
	right := owed(t, bson.D{})
	for part := range parts {
		wrong := right
		wrong[part] += "x"
		got := wrong.Print().Differences(right.Print())
		if len(got) != 1 || got[0] != part {
			t.Errorf("with another %v: got %v", part, got)
		}
	}
}

// Data is read whatever its size: where a value ends as a reader's buffer does, too.
func TestSeen_ReadsDataOfEverySize(t *testing.T) {
	t.Parallel()
	for size := range 600 {
		note := strings.Repeat("x", size)
		want := owed(t, bson.D{{Key: "laden", Value: bson.D{}}, {Key: "note", Value: note}, {Key: "sku", Value: "sku-224"}})[Data]
		got := Seen(&azservicebus.ReceivedMessage{Body: []byte(`{"laden":{},"note":"` + note + `","sku":"sku-224"}`)})[Data]
		if got != want {
			t.Fatalf("a note of %d bytes: got data that ends with %q, want %q", size, got[max(0, len(got)-60):], want[len(want)-60:])
		}
	}
}
