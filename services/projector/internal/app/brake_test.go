package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// A projection that fails for every aggregate halts some, then the projector
// stands still and says so, a restart changes nothing, and a redrive with the
// projection mended brings it back.
func TestBrake_ABadProjectionHaltsSomeAggregatesAndNoMore(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "brake", database)
	cfg.HaltLimit = 3
	onTopic(t, "brake", database, counting)
	for i := range 12 {
		send(t, "brake", event(fmt.Sprint("a", i), 1, "Doubled", `{"n":"x"}`))
	}
	p := start(t, cfg, parse(t))
	stopped := func(p *projector) func() bool {
		return func() bool {
			s := p.Status()
			return s.State == "stopped by HALT_LIMIT" && s.Sessions == 0 && s.Accepting == 0
		}
	}
	until(t, "the projector stands still", stopped(p))
	for _, again := range []bool{false, true} {
		if again {
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
			p = start(t, cfg, parse(t))
			until(t, "the restarted projector stands still", stopped(p))
			if received := p.Status().Received; received != 0 {
				t.Errorf("restarted: %d messages received, want none", received)
			}
		}
		if n, err := db.Collection("halted_aggregates").CountDocuments(t.Context(), bson.D{}); err != nil || n != 3 {
			t.Errorf("restarted %t: %d aggregates are halted (%v), want 3", again, n, err)
		}
		if why := p.Status().HaltBrake; !strings.Contains(why, "projector parked redrive --all") || !strings.Contains(why, "Aggregates that began in the middle") {
			t.Errorf("restarted %t: status says %q, want the command", again, why)
		}
		if code, text := answer(t, p, "/ready"); code != http.StatusServiceUnavailable {
			t.Errorf("restarted %t: /ready: got %d %s, want 503", again, code, text)
		}
		if !strings.Contains(scraped(t, p), "projector_halt_brake 1\n") {
			t.Errorf("restarted %t: no projector_halt_brake 1 in the metrics", again)
		}
		if !strings.Contains(p.logs.String(), "no more sessions are taken") {
			t.Errorf("restarted %t: the log says nothing", again)
		}
	}

	mended := strings.ReplaceAll(counting, "data.n * 2", "100")
	t.Setenv("PROJECTIONS", file(t, "mended.yaml", mended))
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	projections, err := projection.Parse("test.yaml", []byte(mended))
	if err != nil {
		t.Fatal(err)
	}
	p = start(t, cfg, projections)
	until(t, "the mended projector stands still", stopped(p))
	if lines, err := runCommand(t, "parked", "redrive", "--all"); err != nil || len(lines) != 3 {
		t.Errorf("redrive: got %v and %v, want three lifted", lines, err)
	}
	until(t, "all are projected", func() bool { return len(sandboxtest.Documents(t, db, "orders")) == 12 })
	if s := p.Status(); s.HaltBrake != "" || s.State != "running" {
		t.Errorf("afterwards: got state %q and brake %q, want it running", s.State, s.HaltBrake)
	}
}

// With halts resume the projector goes on although they are halted.
func TestBrake_ResumeGoesOnWithWhatIsHalted(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "resume", database)
	cfg.HaltLimit = 2
	onTopic(t, "resume", database, counting)
	p := start(t, cfg, parse(t))
	for i := range 3 {
		send(t, "resume", event(fmt.Sprint("a", i), 1, "Doubled", `{"n":"x"}`))
	}
	braked := func() bool { return p.Status().HaltBrake != "" }
	until(t, "the projector stands still", braked)
	if lines, err := runCommand(t, "halts", "resume", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["accepted"] != 2.0 || lines[0]["dry_run"] != true {
		t.Errorf("dry run: got %v and %v, want two that would be accepted", lines, err)
	}
	if lines, err := runCommand(t, "halts", "resume"); err != nil || len(lines) != 1 || lines[0]["accepted"] != 2.0 {
		t.Errorf("resume: got %v and %v, want two accepted", lines, err)
	}
	until(t, "the third is halted, too", func() bool {
		n, err := db.Collection("halted_aggregates").CountDocuments(t.Context(), bson.D{})
		return err == nil && n == 3
	})
	until(t, "it goes on", func() bool { return p.Status().State == "running" })
}
