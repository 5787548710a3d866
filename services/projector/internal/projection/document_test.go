package projection_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

func TestDocument_TheLatestDocumentIsKeptWhateverTheOperation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		operation contract.Operation
		data      string
		update    string // in Extended JSON; of a deletion nothing
	}{
		"an insert":                    {contract.Insert, `{"document":{"_id":1,"n":2}}`, `{"$set":{"data":{"_id":1,"n":2}}}`},
		"a replacement":                {contract.Replace, `{"document":{"n":3},"before":{"n":2}}`, `{"$set":{"data":{"n":3}}}`},
		"a snapshot":                   {contract.Snapshot, `{"document":{"n":3}}`, `{"$set":{"data":{"n":3}}}`},
		"an update with its document":  {contract.Update, `{"document":{"n":4},"changed":{"n":4},"truncated":[{"field":"a","newSize":1}]}`, `{"$set":{"data":{"n":4}}}`},
		"an update with what changed":  {contract.Update, `{"changed":{"n":4,"a.b":{"c":1}},"removed":["due"]}`, `{"$set":{"data.n":4,"data.a.b":{"c":1}},"$unset":{"data.due":""}}`},
		"an update of nothing":         {contract.Update, `{"changed":{}}`, `{}`},
		"a deletion":                   {contract.Delete, "", ""},
		"a deletion with its document": {contract.Delete, `{"before":{"n":4}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes, err := projection.Latest{Collection: "latest"}.Decide(documentChange(t, tt.operation, tt.data))
			if err != nil || len(writes) != 1 {
				t.Fatalf("Decide = %v, %v, want one write", writes, err)
			}
			w := writes[0]
			if w.Delete != (tt.operation == contract.Delete) {
				t.Errorf("the write deletes: %v", w.Delete)
			}
			if w.Delete {
				return
			}
			if w.Update == nil {
				w.Update = bson.D{}
			}
			got, err := bson.MarshalExtJSON(w.Update, false, false)
			if err != nil || string(got) != tt.update {
				t.Errorf("the update is %s, %v, want %s", got, err, tt.update)
			}
		})
	}
}

func TestDocument_ACutArrayWithoutItsDocumentIsRefused(t *testing.T) {
	t.Parallel()
	change := documentChange(t, contract.Update, `{"changed":{},"truncated":[{"field":"lines","newSize":1}]}`)
	if _, err := (projection.Latest{}).Decide(change); err == nil || !strings.Contains(err.Error(), "FULL_DOCUMENT") {
		t.Errorf("Decide = %v, want it to say what to set", err)
	}
}

func TestDocument_ADocumentChangeThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`7`, `{"changed":7}`, `{"removed":[1]}`} {
		event := contract.Event{Operation: contract.Update, DataSchema: contract.DocumentChange, ContentType: contract.ContentTypeJSON, Data: []byte(data)}
		if _, err := projection.Read(event); err == nil {
			t.Errorf("Read takes %s for a document change", data)
		}
	}
}

func TestDocument_ADataSchemaOfALaterReleaseIsRefused(t *testing.T) {
	t.Parallel()
	event := contract.Event{Operation: contract.Update, DataSchema: "urn:changerelay:document-change:2", ContentType: contract.ContentTypeJSON, Data: []byte(`{"document":{}}`)}
	if _, err := projection.Read(event); err == nil || !strings.Contains(err.Error(), "dataschema: is") || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("Read = %v, want the schema refused", err)
	}
	event.ContentType, event.Data = "", nil
	if _, err := projection.Read(event); err == nil {
		t.Error("without data: Read takes it, and a later release may not mean that there is none")
	}
}

func documentChange(t *testing.T, operation contract.Operation, data string) *projection.Change {
	t.Helper()
	event := contract.Event{AggregateID: "a", Operation: operation}
	if data != "" {
		event.ContentType, event.DataSchema, event.Data = contract.ContentTypeJSON, contract.DocumentChange, []byte(data)
	}
	change, err := projection.Read(event)
	if err != nil {
		t.Fatal(err)
	}
	return change
}
