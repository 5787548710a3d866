package projector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector"
	"changerelay/services/projector/internal/sandboxtest"
)

// listing keeps the versions of an aggregate's events, and cannot decide about those that
// broken names.
func listing(name string, onError projector.OnError, broken func(e *projector.Event) error) projector.Projection {
	return projector.Projection{
		Name: name, Collection: name, Revision: "1", OnError: onError,
		Decide: func(e *projector.Event) ([]projector.Write, error) {
			if err := broken(e); err != nil {
				return nil, err
			}
			return []projector.Write{projector.Update(e.AggregateID, projector.Push("seen", e.Version))}, nil
		},
	}
}

func happened(t *testing.T, n int64) contract.Message {
	t.Helper()
	position := contract.StreamPosition(uint32(time.Now().Unix()), uint32(n), fmt.Sprintf("82%08X", n))
	m, err := contract.Encode(contract.Event{
		ID: fmt.Sprintf("a-%d", n), Source: "/shop/events", Type: "Happened", AggregateID: "a", Operation: contract.Insert,
		Position: position, Version: contract.VersionOf(n), Sequence: contract.SequenceOf(contract.VersionOf(n), position), Term: 1,
		ContentType: contract.ContentTypeJSON, Data: []byte(`{}`),
	}, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A program's projections that say skip record what they cannot apply, be it an error, a
// panic, or what the server refuses, and go on; the others apply it.
func TestOnError_AProgramsProjectionsSkipAndGoOn(t *testing.T) {
	servers, err := sandboxtest.Start(sandboxtest.Topics("topic"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, database := servers.Mongo(t, nil)
	for name, value := range map[string]string{
		"SERVICEBUS_CONNECTION_STRING": servers.ServiceBus, "SERVICEBUS_TOPIC": "topic", "SERVICEBUS_SUBSCRIPTION": "projector",
		"READMODEL_MONGODB_URI": servers.MongoURI, "READMODEL_DATABASE": database, "ADMIN_ADDR": "127.0.0.1:0",
	} {
		t.Setenv(name, value)
	}
	second := func(fail func() error) func(e *projector.Event) error {
		return func(e *projector.Event) error {
			if e.Version != 2 {
				return nil
			}
			return fail()
		}
	}
	refused := listing("refused", projector.OnError{Store: projector.Skip}, second(func() error { return nil }))
	push := refused.Decide
	refused.Decide = func(e *projector.Event) ([]projector.Write, error) {
		if e.Version == 2 {
			return []projector.Write{projector.Update(e.AggregateID, projector.Inc("seen", 1))}, nil // it is an array
		}
		return push(e)
	}
	projections := []projector.Projection{
		listing("all", projector.OnError{}, second(func() error { return nil })),
		listing("failing", projector.OnError{Evaluate: projector.Skip}, second(func() error { return errors.New("of the code") })),
		listing("panicking", projector.OnError{Evaluate: projector.Skip}, second(func() error { panic("of the code") })),
		refused,
	}
	if status, _, stderr := run(t, "setup", projections...); status != 0 {
		t.Fatalf("setup: got status %d and %s", status, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr strings.Builder
	ended := make(chan int, 1)
	go func() { ended <- projector.Run(ctx, nil, &stdout, &stderr, projections...) }()
	sandboxtest.Send(t, servers, "topic", happened(t, 1), happened(t, 2), happened(t, 3))
	db := client.Database(database)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(90 * time.Second)
	defer limit.Stop()
	for name, want := range map[string]string{"all": "[1 2 3]", "failing": "[1 3]", "panicking": "[1 3]", "refused": "[1 3]"} {
		for got := ""; got != want; got = seen(t, sandboxtest.Documents(t, db, name)["a"]) {
			select {
			case <-again.C:
			case status := <-ended:
				t.Fatalf("it has ended with status %d: %s", status, &stderr)
			case <-limit.C:
				t.Fatalf("%s: got %s, want %s", name, got, want)
			}
		}
	}
	cancel()
	if status := <-ended; status != 0 {
		t.Errorf("got status %d, %s and %s, want 0", status, &stdout, &stderr)
	}
	status, listed, problems := run(t, "skipped list", projections...)
	if status != 0 || strings.Count(listed, "\n") != 3 {
		t.Errorf("skipped list: got status %d, %s and %s, want three records", status, listed, problems)
	}
	for _, want := range []string{`"projection":"failing"`, `"projection":"panicking"`, `"projection":"refused"`} {
		if !strings.Contains(listed, want) {
			t.Errorf("skipped list: got %s, want %s", listed, want)
		}
	}
}

func seen(t *testing.T, document bson.Raw) string {
	t.Helper()
	var all struct{ Seen []int64 }
	if document != nil {
		if err := bson.Unmarshal(document, &all); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all.Seen)
	return fmt.Sprint(all.Seen)
}
