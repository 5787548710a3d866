package witness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/poll"
)

// What services that were stopped in good order must not leave behind.
const (
	SessionsLocked = "sessions still locked after the projectors have stopped"
	StreamsOpen    = "change streams still open after the publishers have stopped"
)

// AtStop looks at what is left once all services have stopped in good order. The
// broker is given until ctx ends to notice that the holder of a session is gone:
// one that was killed before leaves it locked until its lock ends. A service that
// was killed leaves change streams, too, until the server drops them; killed says
// that one was, and that they count for nothing. Servers that are no sandbox do
// not tell.
func (w *Witness) AtStop(ctx context.Context, killed bool) ([]Violation, error) {
	if w.endpoints.SandboxStatusURL == "" {
		return nil, nil
	}
	var sessions, streams validate.Findings
	var last error
	_ = poll.Until(ctx, "the sessions to be free", func(ctx context.Context) (bool, string) {
		sessions, streams, last = w.held(ctx)
		return last == nil && sessions.Count == 0, ""
	})
	violations := []Violation{{SessionsLocked, sessions}}
	if !killed {
		violations = append(violations, Violation{StreamsOpen, streams})
	}
	return violations, last
}

// held finds locked sessions of the projectors' subscriptions, and change streams
// on the source, where the witness has none.
func (w *Witness) held(ctx context.Context) (sessions, streams validate.Findings, err error) {
	status, err := w.endpoints.SandboxStatus(ctx)
	if err != nil {
		return sessions, streams, fmt.Errorf("look for what is left: %w", err)
	}
	for _, name := range w.subscriptions {
		entity, err := status.Entity(w.names.Topic + "/Subscriptions/" + name)
		if err != nil {
			return sessions, streams, fmt.Errorf("look for what is left: %w", err)
		}
		sessions.Count += entity.SessionsLocked
	}
	for _, cursor := range status.Cursors {
		if cursor.ChangeStream && slices.Contains(w.names.Collections(), strings.TrimPrefix(cursor.Namespace, w.names.SourceDatabase+".")) {
			streams.Add("on %s", cursor.Namespace)
		}
	}
	return sessions, streams, nil
}
