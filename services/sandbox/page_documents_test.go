package sandbox_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/sandbox"
)

// answered asks the page and decodes the answer, which must have this status.
func answered[T any](t *testing.T, s *sandbox.Sandbox, status int, method, path, body string) (answer T) {
	t.Helper()
	got, text := ask(t, s.URL(), method, path, body)
	if got != status {
		t.Fatalf("%s %s: got status %d and %s, want %d", method, path, got, text, status)
	}
	must(t, json.Unmarshal([]byte(text), &answer))
	return answer
}

type foundDocuments struct {
	Documents []json.RawMessage
	More      bool
	NextSkip  int `json:"next_skip"`
}

// lookAt asks for documents of test.things.
func lookAt(t *testing.T, s *sandbox.Sandbox, query url.Values) foundDocuments {
	t.Helper()
	return answered[foundDocuments](t, s, http.StatusOK, http.MethodGet, "/documents/test/things?"+query.Encode(), "")
}

func (f foundDocuments) compact(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(f.Documents)
	must(t, err)
	return string(text)
}

func TestPageDocuments_DocumentsOfAClientAreFoundByFilter(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	_, err := database(t, s).Collection("things").InsertMany(t.Context(), []any{
		bson.D{{Key: "_id", Value: int32(1)}, {Key: "kind", Value: "a"}, {Key: "n", Value: int64(9007199254740993)}},
		bson.D{{Key: "_id", Value: int32(2)}, {Key: "kind", Value: "b"}, {Key: "at", Value: time.UnixMilli(0)}},
		bson.D{{Key: "_id", Value: int32(3)}, {Key: "kind", Value: "a"}, {Key: "n", Value: 0.5}},
	})
	must(t, err)
	for name, test := range map[string]struct {
		query url.Values
		want  string
	}{
		"all": {url.Values{"projection": {`{"_id": 1}`}}, `[{"_id":1},{"_id":2},{"_id":3}]`},
		"by a filter, sorted": {
			url.Values{"filter": {`{"kind": "a"}`}, "sort": {`{"_id": -1}`}},
			`[{"_id":3,"kind":"a","n":0.5},{"_id":1,"kind":"a","n":9007199254740993}]`,
		},
		"by a filter that names a type": {url.Values{"filter": {`{"at": {"$date": {"$numberLong": "0"}}}`}, "projection": {`{"_id": 1}`}}, `[{"_id":2}]`},
		"canonical": {
			url.Values{"filter": {`{"_id": 1}`}, "form": {"canonical"}},
			`[{"_id":{"$numberInt":"1"},"kind":"a","n":{"$numberLong":"9007199254740993"}}]`,
		},
		"as text": {url.Values{"filter": {`{"_id": 3}`}, "text": {"true"}}, `["{\n  \"_id\": 3,\n  \"kind\": \"a\",\n  \"n\": 0.5\n}"]`},
		"none":    {url.Values{"filter": {`{"kind": "c"}`}}, `[]`},
	} {
		if got := lookAt(t, s, test.query).compact(t); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestPageDocuments_DocumentsComeInPages(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	_, err := database(t, s).Collection("things").InsertMany(t.Context(), []any{
		bson.D{{Key: "_id", Value: 1}, {Key: "text", Value: strings.Repeat("x", 3<<20)}},
		bson.D{{Key: "_id", Value: 2}, {Key: "text", Value: strings.Repeat("x", 3<<20)}},
		bson.D{{Key: "_id", Value: 3}},
	})
	must(t, err)
	first := lookAt(t, s, url.Values{"projection": {`{"_id": 1}`}, "limit": {"2"}})
	if len(first.Documents) != 2 || !first.More || first.NextSkip != 2 {
		t.Errorf("got %+v, want two documents and that there are more", first)
	}
	last := lookAt(t, s, url.Values{"projection": {`{"_id": 1}`}, "limit": {"2"}, "skip": {"2"}})
	if got := last.compact(t); got != `[{"_id":3}]` || last.More {
		t.Errorf("got %s and more %v, want the last document", got, last.More)
	}
	if large := lookAt(t, s, url.Values{}); len(large.Documents) != 1 || large.NextSkip != 1 {
		t.Errorf("got %d documents of 3 MiB and go on at %d, want one for a page", len(large.Documents), large.NextSkip)
	}
}

func TestPageDocuments_AnInsertedDocumentReachesChangeStreams(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	things := database(t, s).Collection("things")
	stream, err := things.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(t.Context())
	made := answered[struct {
		ID json.RawMessage `json:"_id"`
	}](t, s, http.StatusCreated, http.MethodPost, "/documents/test/things", `{"n": {"$numberLong": "5"}, "b": true}`)
	if !stream.Next(t.Context()) {
		t.Fatalf("got %v, want an event", stream.Err())
	}
	doc := stream.Current.Lookup("fullDocument").Document()
	var id struct {
		OID string `json:"$oid"`
	}
	must(t, json.Unmarshal(made.ID, &id))
	if n, ok := doc.Lookup("n").Int64OK(); !ok || n != 5 || doc.Lookup("_id").ObjectID().Hex() != id.OID {
		t.Errorf("got %s, want the document under the id %s, with an integer of 64 bits", doc, id.OID)
	}
	answered[struct{}](t, s, http.StatusCreated, http.MethodPost, "/documents/test/things", `{"_id": "given"}`)
	twice := answered[struct{ Error string }](t, s, http.StatusBadRequest, http.MethodPost, "/documents/test/things", `{"_id": "given"}`)
	if !strings.Contains(twice.Error, "E11000") {
		t.Errorf("got %q for an id that is taken, want the server's words", twice.Error)
	}
}

// TestPageDocuments_LookingIsNoClient: what somebody looks at uses no fault up and is refused
// by none, while what somebody writes meets them as a client's writes do.
func TestPageDocuments_LookingIsNoClient(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	things := database(t, s).Collection("things")
	_, err := things.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	_, err = s.StartFault(map[string]any{"kind": "mongodb.fail", "commands": []string{"find"}, "code": 121, "times": 1})
	must(t, err)
	if got := lookAt(t, s, nil).compact(t); got != `[{"_id":1}]` {
		t.Errorf("got %s, want the document", got)
	}
	if err := things.FindOne(t.Context(), bson.D{}).Err(); !hasCode(err, 121) {
		t.Errorf("got %v for the client's find, want the fault", err)
	}
	_, err = s.StartFault(map[string]any{"kind": "mongodb.close", "commands": []string{"insert"}, "times": 1})
	must(t, err)
	answered[struct{}](t, s, http.StatusServiceUnavailable, http.MethodPost, "/documents/test/things", `{}`)
	answered[struct{}](t, s, http.StatusCreated, http.MethodPost, "/documents/test/things", `{}`)

	must(t, things.Database().Client().Database("admin").RunCommand(t.Context(),
		bson.D{{Key: "replSetStepDown", Value: 600}, {Key: "force", Value: true}}).Err())
	if got := len(lookAt(t, s, nil).Documents); got != 2 {
		t.Errorf("got %d documents while there is no primary, want 2", got)
	}
	answered[struct{}](t, s, http.StatusServiceUnavailable, http.MethodPost, "/documents/test/things", `{}`)
}
