package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// A projection that gets a key, another one or none any more, under its name and
// version, would put what comes beside what it has applied. It is not started; another
// version is.
func TestShape_AProjectionWithAnotherKeyIsNotStarted(t *testing.T) {
	const (
		own     = "projections:\n  - name: orders\n    version: 1\n    collection: orders\n    on: {Happened: {inc: {events: 1}}}\n"
		keyed   = "projections:\n  - name: orders\n    version: 1\n    collection: orders\n    key: '\"all\"'\n    on: {Happened: {inc: {events: 1}}}\n"
		another = "projections:\n  - name: orders\n    version: 1\n    collection: orders\n    key: event.aggregateId # of each\n    on: {Happened: {inc: {events: 1}}}\n"
		without = "without a key, a document for each aggregate"
	)
	for name, tt := range map[string]struct{ before, after, was, is string }{
		"a key":       {own, keyed, without, `with the key "all"`},
		"another key": {keyed, another, `with the key "all"`, "with the key event.aggregateId"},
		"no key":      {keyed, own, `with the key "all"`, without},
	} {
		t.Run(name, func(t *testing.T) {
			client, database := servers.Mongo(t, nil)
			cfg := configured(t, "shape", database)
			p := start(t, cfg, load(t, file(t, "before.yaml", tt.before)))
			until(t, "it runs", func() bool { return p.Status().State == "running" })
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
			want := `projection "orders_v1" in "orders_v1" were made ` + tt.was + ", and PROJECTIONS declares it " + tt.is
			changed, err := app.New(t.Context(), cfg, load(t, file(t, "after.yaml", tt.after)), "test", &logs{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- changed.Run(ctx) }()
			until(t, "it runs or has ended", func() bool { return len(ended) > 0 || changed.Status().State == "running" })
			cancel()
			if err := <-ended; !errors.Is(err, readmodel.ErrReshaped) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "another version") {
				t.Errorf("a start with %s: got %v, want it refused: %s", name, err, want)
			}
			onTopic(t, "shape", database, tt.after)
			refused(t, want, "setup")
			refused(t, want, "parked", "redrive", "a", "--other-projections")
			found, _, _ := examined(t, servers)
			wantAll(t, found, "is not for these projections", want)
			next := strings.Replace(tt.after, "version: 1", "version: 2", 1)
			p = start(t, cfg, load(t, file(t, "next.yaml", next)))
			until(t, "the next version runs", func() bool { return p.Status().State == "running" })
			if n, err := client.Database(database).Collection(projection.Owners).CountDocuments(t.Context(), bson.D{{Key: "of", Value: "orders_v2"}}); err != nil || n != 1 {
				t.Errorf("the next version: %d notes and %v, want its own", n, err)
			}
		})
	}
}
