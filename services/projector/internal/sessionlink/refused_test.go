package sessionlink

import (
	"errors"
	"testing"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/decodable"
	"changerelay/services/projector/internal/sandboxtest"
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

// What is known of a session's message holds until the session is granted again.
func TestAttach_ForgetsWhatWasRefusedOfTheSession(t *testing.T) {
	t.Parallel()
	const topic = "refused-message"
	all := messages("a", 1, 2)
	sandboxtest.SendUndecodable(t, servers, topic, all[0])
	sandboxtest.Send(t, servers, topic, all[1])
	s := open(t, at(t, servers, topic))
	r := mustAccept(t, s)
	if m, err := r.Receive(t.Context(), 1); !errors.Is(err, session.ErrUndecodable) || !r.wire.refused.Has("a") {
		t.Fatalf("receive: got %d messages and %v, and noted is %v, want it undecodable, and that noted", len(m), err, r.wire.refused.Has("a"))
	}
	_ = r.Close(t.Context()) // its link has ended
	sandboxtest.TakeUndecodable(t, servers, topic, "projector", "a")
	again := mustAccept(t, s)
	receive(t, again, 1, 1)
	if again.wire != r.wire || again.wire.refused.Has("a") {
		t.Error("the session is noted still, want it forgotten on the same connection")
	}
	if err := again.Close(t.Context()); err != nil {
		t.Errorf("give the session back: %v", err)
	}
}
