package sessionlink

import (
	"errors"
	"testing"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/decodable"
	"changerelay/services/projector/internal/session"
)

// The connection may end for a message before its link has: of the sessions on it, only the
// message's counts as one that cannot go on.
func TestReceiver_ARefusedMessageThatEndsTheConnectionIsOfItsSession(t *testing.T) {
	t.Parallel()
	w := &wire{refused: new(decodable.Refused)}
	w.refused.Note("a")
	for id, want := range map[string]bool{"a": true, "b": false} {
		r := &receiver{wire: w, sessionID: id}
		for _, ended := range []error{&amqp.ConnError{}, errClosed} {
			if err := r.failed("receive from", ended); errors.Is(err, session.ErrUndecodable) != want {
				t.Errorf("session %s: got %v, want it undecodable: %v", id, err, want)
			}
		}
	}
}
