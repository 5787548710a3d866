package admin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestTroubles_TheLatestTroublesAreKept(t *testing.T) {
	var lines strings.Builder
	troubles := NewTroubles(&lines, func(line string) string { return strings.ReplaceAll(line, "canary", "***") })
	log := zerolog.New(troubles)
	log.Info().Msg("all is well")
	for i := range remembered {
		log.Warn().Msg(fmt.Sprint("trouble ", i))
	}
	log.Error().Err(errors.New("no canary")).Str("time", "10:00").Msg("send")
	log.Error().Err(errors.New("no canary")).Str("time", "10:01").Msg("send")

	got := troubles.Latest()
	if want := (Trouble{At: "10:01", Level: "error", Message: "send", Error: "no ***", Times: 2}); got[0] != want {
		t.Errorf("the latest: got %+v, want %+v", got[0], want)
	}
	if len(got) != remembered || got[remembered-1].Message != "trouble 1" {
		t.Errorf("got %d troubles, the oldest %+v, want %d without the oldest", len(got), got[len(got)-1], remembered)
	}
	if n := strings.Count(lines.String(), "\n"); n != remembered+3 {
		t.Errorf("the log has %d lines, want all %d", n, remembered+3)
	}
}
