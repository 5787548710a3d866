package scenario

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestPath_EveryEventReachesTheReadModelOnce(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	r.write(t, 4000)
	v := r.judge(t)
	if got, want := v.Applied, 4000; got != want {
		t.Errorf("events applied: got %d, want %d", got, want)
	}
	if got, want := len(v.Sends), 4000; got != want {
		t.Errorf("messages on the topic: got %d, want %d", got, want)
	}
}

func TestPath_EveryProcessAnswersOnItsAdminPort(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	r.write(t, 200)
	r.judge(t)
	tests := []struct{ path, says string }{
		{"/live", ""}, {"/ready", ""}, {"/", "<"}, {"/metrics", "# HELP"}, {"/status", `"state"`},
	}
	for _, n := range slices.Concat(r.Publishers, r.Projectors) {
		for _, tt := range tests {
			code, body, err := n.Get(within(t), tt.path)
			if err != nil || code != http.StatusOK || !strings.Contains(string(body), tt.says) {
				t.Errorf("%s %s: got %d %q, %v, want 200 with %q; a standby is live and ready like a leader", n.Name, tt.path, code, body, err, tt.says)
			}
		}
	}
}
