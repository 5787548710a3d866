package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// inGo is a projection in Go, of a revision, that sets field v to what decide says.
func inGo(t *testing.T, name, revision string, decide func(c *projection.Change) any) *projection.Coded {
	t.Helper()
	p, err := projection.NewCoded(projection.Code{
		Name: name, Collection: name, Revision: revision, Types: []string{"Happened"},
		Decide: func(c *projection.Change, _ bson.Raw) ([]projection.Write, error) {
			update, err := projection.Update([]projection.Operand{{Operator: "set", Path: "v", Value: decide(c)}})
			return []projection.Write{{ID: c.AggregateID, Update: update}}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A panic of a projection's code halts the aggregate of its event. The process lives,
// others flow, and the mended code applies what was parked.
func TestInGo_APanicHaltsItsAggregateAlone(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	cfg := configured(t, "ingo", database)
	onTopic(t, "ingo", database, counting)
	t.Setenv("PROJECTIONS", "")
	broken := inGo(t, "coded", "1", func(c *projection.Change) any {
		return []string{"no", "first"}[c.Version.Number%3] // there is no third
	})
	p := start(t, cfg, projection.Projections{broken})
	send(t, "ingo", event("a", 1, "Happened", `{}`), event("a", 2, "Happened", `{}`), event("a", 3, "Happened", `{}`), event("b", 1, "Happened", `{}`))
	until(t, "the aggregate is halted, and the other one is written", func() bool {
		s := p.Status()
		return s.Parked == 2 && s.Applied == 2
	})
	if logged := p.logs.String(); !strings.Contains(logged, "index out of range [2] with length 2") || !strings.Contains(logged, "ingo_test.go") {
		t.Errorf("got the log %s, want the panic, with the place of the code", logged)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	ctx := config.BuiltWith(t.Context(), projection.Projections{inGo(t, "coded", "2", func(c *projection.Change) any { return c.Version.Number })})
	_, err := runIn(ctx, t, "parked", "redrive", "a")
	if err == nil || !strings.Contains(err.Error(), `projection "coded" says something else here`) {
		t.Errorf("redrive with other code: got %v, want it refused", err)
	}
	if _, err := runIn(ctx, t, "parked", "redrive", "a", "--other-projections"); err != nil {
		t.Errorf("redrive with the mended code: %v", err)
	}
	documents := sandboxtest.Documents(t, client.Database(database), "coded_current")
	if a, b := documents["a"].Lookup("v").AsInt64(), documents["b"].Lookup("v").StringValue(); a != 3 || b != "first" {
		t.Errorf("got %v and %v, want what was parked applied", a, b)
	}
}

// A projection in Go that says skip goes on without what it cannot decide about, also
// where it looks at the document as it is, and the record, the metrics and the other
// projections say so.
func TestInGo_SkipsByItsPolicy(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	cfg := configured(t, "ingo-skip", database)
	onTopic(t, "ingo-skip", database, counting)
	t.Setenv("PROJECTIONS", "")
	looking, err := projection.NewCoded(projection.Code{
		Name: "looking", Collection: "looking", Version: 1, Revision: "1", State: true, OnError: projection.Policy{projection.Evaluate: projection.Skip},
		Decide: func(c *projection.Change, state bson.Raw) ([]projection.Write, error) {
			if c.Version.Number == 2 {
				panic("of the code")
			}
			update, err := projection.Update([]projection.Operand{{Operator: "set", Path: "fields", Value: len(state)}, {Operator: "push", Path: "seen", Values: []any{c.Version.Number}}})
			return []projection.Write{{ID: c.AggregateID, Update: update}}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	sound := inGo(t, "sound", "1", func(c *projection.Change) any { return c.Version.Number })
	p := start(t, cfg, projection.Projections{looking, sound})
	second := event("a", 2, "Happened", `{}`)
	send(t, "ingo-skip", event("a", 1, "Happened", `{}`), second, event("a", 3, "Happened", `{}`))
	until(t, "all have come", func() bool { return p.Status().Completed == 3 })
	send(t, "ingo-skip", second)
	until(t, "the repeat has come", func() bool { return p.Status().Completed == 4 })
	db := client.Database(database)
	if got := seenOf(t, db, "looking_v1", "a"); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("got %v, want all but the one that is skipped", got)
	}
	if got := sandboxtest.Documents(t, db, "sound")["a"].Lookup("v").AsInt64(); got != 3 {
		t.Errorf("the other one has %d, want the last", got)
	}
	ctx := config.BuiltWith(t.Context(), projection.Projections{looking, sound})
	lines, err := runIn(ctx, t, "skipped", "list")
	if err != nil || len(lines) != 1 || lines[0]["projection"] != "looking_v1" || lines[0]["event_id"] != "a-2" || lines[0]["class"] != "evaluate" {
		t.Errorf("skipped list: got %v and %v, want one record", lines, err)
	}
	metrics := shownBy(t, p, "/metrics")
	for _, line := range []string{
		`projector_projection_skipped_total{projection="looking_v1"} 1`, `projector_projection_skipped_total{projection="sound"} 0`,
		`projector_projection_applied_total{projection="looking_v1"} 2`, `projector_projection_applied_total{projection="sound"} 3`,
		`projector_projection_halts_total{projection="looking_v1"} 0`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("/metrics does not show %s", line)
		}
	}
}

// What code decides by more than the event differs from what is recomputed; so does what
// was decided by other code under the same revision.
func TestInGo_VerifyFindsWhatTheCodeDecidesInAnotherWay(t *testing.T) {
	clocked := inGo(t, "clocked", "1", func(*projection.Change) any { return time.Now().UnixNano() })
	sound := inGo(t, "sound", "1", func(c *projection.Change) any { return c.Version.Number })
	v := newVerifying(t, "ingo-verify", clocked, sound)
	v.happen("a", 1, 2, 3)
	v.awaitSequence("clocked", "a", 3)
	v.awaitSequence("sound", "a", 3)
	differences, _, err := v.found("--publisher", v.publisher)
	if err == nil {
		t.Error("verify: got no error, want that it found something")
	}
	wantDifferences(t, differences, map[string]string{"clocked a": "altered"})
	v.built = projection.Projections{clocked, inGo(t, "sound", "1", func(c *projection.Change) any { return -c.Version.Number })}
	if differences, _, _ = v.found("--publisher", v.publisher, "--projection", "sound"); differences["sound a"] == "" {
		t.Errorf("with changed code of the same revision: got %v, want the document found", differences)
	}
}
