package servicebus_test

import (
	"fmt"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

func TestWaiting_SessionsWithMessagesAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t, "waiting", "projector")
	count := func(most, want int) {
		t.Helper()
		if got, err := s.SessionsWithMessages(t.Context(), most); err != nil || got != want {
			t.Errorf("sessions: got %d and %v, want %d", got, err, want)
		}
	}
	count(1000, 0)
	var messages []contract.Message
	for i := range 130 {
		id := fmt.Sprintf("s-%d", i)
		messages = append(messages, message(id+"-1", id))
	}
	sandboxtest.Send(t, servers, "waiting", messages...)
	count(1000, 130)
	count(50, 50)
	release(t, mustAccept(t, s, 0)) // what is held and given back has messages still
	count(1000, 130)
}
