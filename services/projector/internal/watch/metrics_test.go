package watch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/watch"
)

// The lag goes by when the source made the change. The event's own time is the application's,
// which may date it back or ahead, and what is sent again is old.
func TestMetrics_LagIsTheAgeOfTheChange(t *testing.T) {
	t.Parallel()
	const took = 3 * time.Second
	for name, tt := range map[string]struct {
		own     time.Duration // from the change to the event's own time
		without bool          // the position has no cluster time
		resend  contract.Resend
		want    time.Duration
	}{
		"the event is dated back":             {own: -24 * time.Hour, want: took},
		"the event is dated ahead":            {own: 24 * time.Hour, want: took},
		"nothing but the event says when":     {without: true, want: took},
		"the event is sent again and applied": {resend: contract.Resend{ID: "r"}, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, engine := watch.NewMetrics(watch.NewProgress(nil, nil)), &engine{}
				m.Readable(at(uint32(time.Now().Add(-time.Hour).Unix())))
				e := at(uint32(time.Now().Unix()))
				e.Time, e.Resend = time.Now().Add(tt.own), tt.resend
				if tt.without {
					e.Position = ""
				}
				time.Sleep(took) //nolint:forbidigo // in a bubble
				m.Readable(e)
				if got, _ := m.CurrentLag(engine); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}
