package chaos

import (
	"slices"
	"testing"
)

func TestAdvice_IsTheCommandThatIsNamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want []string
	}{
		{text: `{"state":"publishing"}`},
		{text: `{"last_error":"two streams: run \"publisher repartition\" with the new number"}`, want: []string{"repartition"}},
		{text: "stop the publishers and run `publisher checkpoint reset --why TEXT`.", want: []string{"checkpoint", "reset", "--why", "chaos"}},
		{text: `run publisher checkpoint set PLACE, or publisher repartition.`, want: []string{"repartition"}},
		{text: `run publisher checkpoint set PLACE or publisher checkpoint reset, with --new where nothing is to be sent again`, want: []string{"checkpoint", "reset", "--why", "chaos"}},
		{text: `publisher checkpoint accept; ON_COLLECTION_CHANGE decides`, want: []string{"checkpoint", "accept", "--why", "chaos"}},
		{text: `run publisher repartition --from 2, then start them`, want: []string{"repartition", "--from", "2"}},
		{text: `run publisher repartition --from N`},
		{text: `run publisher checkpoint set 2026-01-01T00:00:00Z --why TEXT`, want: []string{"checkpoint", "set", "2026-01-01T00:00:00Z", "--why", "chaos"}},
	}
	for _, tt := range tests {
		if got := adviceIn(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
