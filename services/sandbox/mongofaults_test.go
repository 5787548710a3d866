package sandbox_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/sandbox"
)

// TestMongoFaults_CommandsFailOnDemand starts each kind of fault of the MongoDB side by HTTP
// and looks at what the driver is told.
func TestMongoFaults_CommandsFailOnDemand(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	things := database(t, s).Collection("things")
	insert := func() error {
		_, err := things.InsertOne(t.Context(), bson.D{})
		return err
	}
	fault := func(body string) {
		t.Helper()
		if status, text := ask(t, s.URL(), http.MethodPost, "/faults", body); status >= 300 {
			t.Fatalf("%s: got status %d and %s", body, status, text)
		}
	}
	must(t, insert())

	fault(`{"kind":"mongodb.fail","commands":["insert"],"code":121}`)
	if err := insert(); !hasCode(err, 121) {
		t.Errorf("got %v, want code 121", err)
	}
	must(t, things.FindOne(t.Context(), bson.D{}).Err())
	ask(t, s.URL(), http.MethodDelete, "/faults", "")
	must(t, insert())

	fault(`{"kind":"mongodb.close","commands":["insert"],"times":2}`) // the driver tries a write twice
	if err := insert(); !mongo.IsNetworkError(err) {
		t.Errorf("got %v, want a lost connection", err)
	}
	must(t, insert())
	ask(t, s.URL(), http.MethodDelete, "/faults", "")

	fault(`{"kind":"mongodb.fail","commands":["insert"],"code":10107,"times":1}`)
	must(t, insert()) // which the driver tries again

	fault(`{"kind":"mongodb.delay","commands":["count"],"delay":"1h"}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := things.EstimatedDocumentCount(ctx); !mongo.IsTimeout(err) {
		t.Errorf("got %v, want a command that takes too long", err)
	}
}

func hasCode(err error, code int) bool {
	failure, ok := errors.AsType[mongo.ServerError](err)
	return ok && failure.HasErrorCode(code)
}

func TestMongoFaults_CutConnectionsAreMadeAnew(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	things := database(t, s).Collection("things")
	stream, err := things.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(t.Context())
	cut, err := s.StartFault(map[string]string{"kind": "mongodb.cut"})
	must(t, err)
	if cut.Affected == 0 || cut.ID != 0 {
		t.Errorf("got %+v, want connections that were cut at once", cut)
	}
	_, err = things.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	if !stream.Next(t.Context()) {
		t.Errorf("got %v, want the stream to go on", stream.Err())
	}
}

func TestMongoFaults_AFaultThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	refused := []string{
		`{"kind":"mongodb.fail","commands":["insert"]}`, `{"kind":"mongodb.fail","code":1}`,
		`{"kind":"mongodb.fail","commands":["fly"],"code":1}`, `{"kind":"mongodb.close"}`,
		`{"kind":"mongodb.delay","delay":"soon"}`, `{"kind":"mongodb.delay","delay":"1s","times":-1}`,
	}
	for body := range slices.Values(refused) {
		if status, text := ask(t, s.URL(), http.MethodPost, "/faults", body); status != http.StatusBadRequest || strings.TrimSpace(text) == "" {
			t.Errorf("%s: got status %d and %q, want 400 and why", body, status, text)
		}
	}
}
