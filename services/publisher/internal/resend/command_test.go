package resend_test

import (
	"testing"
	"time"

	"changerelay/services/publisher/internal/resend"
)

// What is printed to be run in a shell is run as it is: a value stays one word, and one
// that has not ended is cancelled first.
func TestCommand_IsSafeInAShellAndCancelsWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, r := range map[string]resend.Record{
		"publisher resend --all --why TEXT":                                       {State: resend.Done},
		"publisher resend cancel --why TEXT && publisher resend --all --why TEXT": {State: resend.Paused},
		`publisher resend --aggregate 'it'\''s; $(rm)' --group 'g' --why TEXT`:    {State: resend.Cancelled, Group: "g", Selection: resend.Selection{Aggregates: []string{"it's; $(rm)"}}},
		`publisher resend --where '{"a":"'\''"}' --why TEXT`:                      {State: resend.Incomplete, Selection: resend.Selection{Where: `{"a":"'"}`}},
		"publisher resend --since '2026-01-02T03:04:05Z' --why TEXT":              {State: resend.Done, Selection: resend.Selection{Since: at}},
	} {
		if got := r.Command(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
