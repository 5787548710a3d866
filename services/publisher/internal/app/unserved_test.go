package app_test

import (
	"bytes"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/testserver"
)

// A resend of a large collection without an index goes through all of it for each chunk.
// Whoever asks for it is told so, and by doctor before that.
func TestResend_OfALargeCollectionWithoutAnIndexIsWarnedOf(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	warned := func() (byResend, byDoctor bool) {
		t.Helper()
		view, err := resends(t, c, "--all", "--dry-run")
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		_ = runCommand(t, c, &said, "doctor", "--json") // it finds other things, too
		return strings.Contains(strings.Join(view.Warnings, " "), "no index serves it"), strings.Contains(said.String(), "has no index that serves it")
	}
	many := func(from, to int) {
		t.Helper()
		var all []any
		for n := from; n < to; n++ {
			all = append(all, bson.D{{Key: "aggregateId", Value: "many"}, {Key: "version", Value: n}})
		}
		if _, err := source.InsertMany(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	many(0, 50_000)
	if byResend, byDoctor := warned(); byResend || byDoctor {
		t.Errorf("of 50,000 documents: warned by resend %v, by doctor %v, want neither", byResend, byDoctor)
	}
	many(50_000, 50_001)
	if byResend, byDoctor := warned(); !byResend || !byDoctor {
		t.Errorf("of more: warned by resend %v, by doctor %v, want both", byResend, byDoctor)
	}
	index := bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
	if _, err := source.Indexes().CreateOne(t.Context(), driver.IndexModel{Keys: index}); err != nil {
		t.Fatal(err)
	}
	if byResend, byDoctor := warned(); byResend || byDoctor {
		t.Errorf("with an index: warned by resend %v, by doctor %v, want neither", byResend, byDoctor)
	}
}
