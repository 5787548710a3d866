package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/watch"
)

func versions(t *testing.T) (live, next projection.Projection) {
	t.Helper()
	ps, err := projection.Parse("p.yaml", []byte("projections: [{name: p, version: 1, collection: c, on: {Happened: {inc: {n: 1}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	return ps[0], ps[0].(projection.Renumbered).Renumbered(2)
}

func at(seconds uint32) *contract.Event {
	return &contract.Event{Type: "Happened", Position: contract.StreamPosition(seconds, 1, "82")}
}

// engine is one that is idle since a moment, or is not.
type engine struct {
	idle, paused, empty, oldest time.Time
	undecodable                 time.Time
	applying, accepting         session.Outage
}

func (e *engine) Undecodable() ([]string, time.Time) { return nil, e.undecodable }

func (e *engine) Idle() time.Time            { return e.idle }
func (e *engine) Applying() *session.Outage  { return &e.applying }
func (e *engine) Accepting() *session.Outage { return &e.accepting }
func (e *engine) Paused() time.Time          { return e.paused }
func (e *engine) EmptyHanded() time.Time     { return e.empty }
func (e *engine) Oldest() (time.Time, bool)  { return e.oldest, !e.oldest.IsZero() }

// A version that is filled has come to no event but those that are written to it, however
// far the others are, and nothing says how far it is behind.
func TestProgress_OfAVersionThatIsFilledIsItsOwn(t *testing.T) {
	t.Parallel()
	live, next := versions(t)
	p := watch.NewProgress(projection.Projections{live, next}, projection.Projections{next})
	engine := &engine{}
	wrote := func(name string) []projection.Write { return []projection.Write{{Projection: name}} }
	applied, repeated := []delivery.Outcome{delivery.Applied}, []delivery.Outcome{delivery.Repeated}

	p.Projected(at(300), false, wrote("p_v1"), applied)
	p.Projected(at(100), true, wrote("p_v2"), applied)
	p.Projected(at(400), true, wrote("p_v2"), repeated)
	p.Projected(at(150), true, []projection.Write{{Projection: "p_v2", Passed: true}}, applied)
	p.Halted("nobody")
	all := p.Projections(engine)
	if v1 := all["p_v1"]; v1.Applied != 1 || !v1.PositionAt.Equal(time.Unix(300, 0)) || v1.LagSeconds == nil {
		t.Errorf("the live version: got %+v, want one event applied, at its time", v1)
	}
	if v2 := all["p_v2"]; v2.Applied != 1 || !v2.PositionAt.Equal(time.Unix(400, 0)) || v2.LagSeconds != nil {
		t.Errorf("the version that is filled: got %+v, want one event applied, the time of the latest, and no lag", v2)
	}
	p.Projected(at(500), false, wrote("p_v1"), applied)
	if v2 := p.Projections(engine)["p_v2"]; !v2.PositionAt.Equal(time.Unix(400, 0)) {
		t.Errorf("the version that is filled: got %+v, want it where it was", v2)
	}
}

// Once the broker says that there is nothing to do a projection is not behind; of one that
// is filled that says nothing.
func TestProgress_IsNotBehindOnceNothingIsLeft(t *testing.T) {
	t.Parallel()
	live, next := versions(t)
	p := watch.NewProgress(projection.Projections{live, next}, projection.Projections{next})
	p.Projected(at(100), false, []projection.Write{{Projection: "p_v1"}}, []delivery.Outcome{delivery.Applied})
	engine := &engine{idle: time.Now().Add(time.Minute)}
	all := p.Projections(engine)
	if v1 := all["p_v1"]; v1.LagSeconds == nil || *v1.LagSeconds != 0 {
		t.Errorf("the live version: got %+v, want no lag", v1)
	}
	if v2 := all["p_v2"]; v2.LagSeconds != nil {
		t.Errorf("the version that is filled: got %+v, want its lag unknown", v2)
	}
	engine.idle = time.Time{}
	behind := *p.Projections(engine)["p_v1"].LagSeconds
	engine.applying.Failed(errors.New("the read database does not answer"))
	if got := *p.Projections(engine)["p_v1"].LagSeconds; got <= behind {
		t.Errorf("while nothing can be stored: got %v, want it to grow above %v", got, behind)
	}
}

// A broker that cannot be reached says nothing of what waits there: a projection that had
// nothing left is behind by as long as that lasts.
func TestProgress_IsBehindWhileTheBrokerCannotBeReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live, _ := versions(t)
		p := watch.NewProgress(projection.Projections{live}, nil)
		p.Projected(at(100), false, []projection.Write{{Projection: "p_v1"}}, []delivery.Outcome{delivery.Applied})
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		engine := &engine{idle: time.Now()}
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		engine.accepting.Failed(errors.New("the subscription refuses"))
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		if got := *p.Projections(engine)["p_v1"].LagSeconds; got != 60 {
			t.Errorf("after a minute without the broker: got %v, want 60", got)
		}
		engine.accepting.Recovered()
		if got := *p.Projections(engine)["p_v1"].LagSeconds; got != 0 {
			t.Errorf("once the broker says again that nothing is left: got %v, want 0", got)
		}
	})
}

// While a message cannot be decoded a projection is behind by no less than that lasts, though
// the broker has nothing else.
func TestProgress_IsBehindWhileAMessageCannotBeDecoded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live, _ := versions(t)
		p := watch.NewProgress(projection.Projections{live}, nil)
		engine := &engine{idle: time.Now().Add(time.Hour), undecodable: time.Now()}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		if got := *p.Projections(engine)["p_v1"].LagSeconds; got != 60 {
			t.Errorf("after a minute: got %v, want 60", got)
		}
	})
}

// While nothing is applied, whatever for, a projection is behind by more and more.
func TestProgress_FallsBehindWhileNothingIsApplied(t *testing.T) {
	t.Parallel()
	const took, quiet, lasts = 3, 600, 60
	for name, tt := range map[string]struct {
		stops func(*engine)
		want  float64
	}{
		"it is paused":                        {func(e *engine) { e.paused = time.Now() }, took + lasts},
		"sessions bring nothing":              {func(e *engine) { e.empty = time.Now() }, took + lasts},
		"what is in hand waits":               {func(e *engine) { e.oldest = time.Now() }, lasts},
		"sessions are kept that have nothing": {func(*engine) {}, took},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				live, _ := versions(t)
				p, engine := watch.NewProgress(projection.Projections{live}, nil), &engine{}
				changed := at(uint32(time.Now().Unix()))
				time.Sleep(took * time.Second) //nolint:forbidigo // in a bubble
				p.Projected(changed, false, []projection.Write{{Projection: "p_v1"}}, []delivery.Outcome{delivery.Applied})
				time.Sleep(quiet * time.Second) //nolint:forbidigo // in a bubble
				tt.stops(engine)
				time.Sleep(lasts * time.Second) //nolint:forbidigo // in a bubble
				if got := *p.Projections(engine)["p_v1"].LagSeconds; got != tt.want {
					t.Errorf("after a minute: got %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// A process that has applied nothing since its start is behind by as long as something stops
// it; where nothing does, nobody knows yet.
func TestProgress_FallsBehindBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	const lasts, unknown = 60, -1
	for name, tt := range map[string]struct {
		stops func(*engine)
		want  float64
	}{
		"it is paused":                     {func(e *engine) { e.paused = time.Now() }, lasts},
		"sessions bring nothing":           {func(e *engine) { e.empty = time.Now() }, lasts},
		"what is in hand waits":            {func(e *engine) { e.oldest = time.Now() }, lasts},
		"what is in hand has just come":    {func(e *engine) { e.oldest = time.Now().Add((lasts - 1) * time.Second) }, unknown},
		"nothing can be stored":            {func(e *engine) { e.applying.Failed(errors.New("the read database does not answer")) }, lasts},
		"the broker cannot be reached":     {func(e *engine) { e.accepting.Failed(errors.New("the subscription refuses")) }, lasts},
		"what waits is older than a pause": {func(e *engine) { e.paused, e.oldest = time.Now(), time.Now().Add(-lasts*time.Second) }, 2 * lasts},
		"nothing stops it":                 {func(*engine) {}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				live, _ := versions(t)
				p, engine := watch.NewProgress(projection.Projections{live}, nil), &engine{}
				tt.stops(engine)
				time.Sleep(lasts * time.Second) //nolint:forbidigo // in a bubble
				got := float64(unknown)
				if lag := p.Projections(engine)["p_v1"].LagSeconds; lag != nil {
					got = *lag
				}
				if got != tt.want {
					t.Errorf("after a minute: got %v, want %v (%v for unknown)", got, tt.want, unknown)
				}
			})
		})
	}
}

// What is sent again, or comes again, is old: it says nothing of how long events take now.
func TestProgress_TakesNoLagFromWhatComesAgain(t *testing.T) {
	t.Parallel()
	live, _ := versions(t)
	p := watch.NewProgress(projection.Projections{live}, nil)
	engine := &engine{}
	writes := []projection.Write{{Projection: "p_v1"}}
	p.Projected(at(100), false, writes, []delivery.Outcome{delivery.Repeated})
	again := at(100)
	again.Resend = contract.Resend{ID: "r"}
	p.Projected(again, false, writes, []delivery.Outcome{delivery.Applied})
	if got := p.Projections(engine)["p_v1"]; got.LagSeconds != nil || got.Applied != 1 {
		t.Errorf("got %+v, want one event applied and no lag", got)
	}
	// One that it does not follow shows as well how far it is.
	p.Projected(at(uint32(time.Now().Unix())), false, nil, nil)
	if got := p.Projections(engine)["p_v1"]; got.LagSeconds == nil || *got.LagSeconds > 100 || got.Applied != 1 {
		t.Errorf("got %+v, want the lag of the latest event", got)
	}
}

// An event that is skipped counts for the projection that lacks it, once.
func TestProgress_CountsASkipForTheProjectionThatLacksIt(t *testing.T) {
	t.Parallel()
	live, next := versions(t)
	p := watch.NewProgress(projection.Projections{live, next}, nil)
	writes := []projection.Write{{Projection: "p_v1"}, {Projection: "p_v2", Kept: true, Skipped: &projection.Skipped{Action: projection.Skip}}}
	p.Projected(at(100), false, writes, []delivery.Outcome{delivery.Applied, delivery.Applied})
	p.Projected(at(100), false, writes, []delivery.Outcome{delivery.Repeated, delivery.Repeated})
	all := p.Projections(&engine{})
	if v1, v2 := all["p_v1"], all["p_v2"]; v1.Applied != 1 || v1.Skipped != 0 || v2.Applied != 0 || v2.Skipped != 1 || v2.PositionAt == nil {
		t.Errorf("got %+v and %+v, want it applied for the first and skipped for the second", v1, v2)
	}
}

// However many events there are, there is one series for each projection.
func TestProgress_HasASeriesForEachProjectionAlone(t *testing.T) {
	t.Parallel()
	live, _ := versions(t)
	p := watch.NewProgress(projection.Projections{live}, nil)
	for _, name := range []string{"p_v1", "other", ""} {
		p.Projected(at(100), false, []projection.Write{{Projection: name}}, []delivery.Outcome{delivery.Applied})
		p.Halted(name)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.Collector(&engine{}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if n := len(family.GetMetric()); n != 1 {
			t.Errorf("%s has %d series, want 1", family.GetName(), n)
		}
		if n := family.GetMetric()[0].GetCounter().GetValue(); family.GetName() == "projector_projection_halts_total" && n != 1 {
			t.Errorf("got %v halts, want 1", n)
		}
	}
}

// What cannot be counted is not nothing.
func TestProgress_ShowsNoHaltsThatItCouldNotCount(t *testing.T) {
	t.Parallel()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	live, _ := versions(t)
	p := watch.NewProgress(projection.Projections{live}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Look(ctx, readmodel.New(client, readmodel.Config{Database: "read"})); err == nil {
		t.Error("got no error of a count that was interrupted")
	}
	if n := p.Projections(&engine{})["p_v1"].HaltedAggregates; n != nil {
		t.Errorf("got %d halted aggregates, want it not to be known", *n)
	}
}
