package app

import (
	"testing"

	"changerelay/services/projector/internal/config"
)

func TestConnections_AreAsManyAsTheReceiverNeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		receiver             string
		sessions, set, wants int
	}{
		{config.ReceiverAMQP, 64, 0, 1},
		{config.ReceiverAMQP, 257, 0, 2},
		{config.ReceiverSDK, 64, 0, 8},
		{config.ReceiverSDK, 65, 0, 9},
		{config.ReceiverAMQP, 64, 3, 3},
	} {
		c := config.Config{Receiver: tt.receiver, MaxSessions: tt.sessions, Connections: tt.set}
		if got := c.ConnectionsOrDefault(); got != tt.wants {
			t.Errorf("%s with %d sessions and %d set: got %d connections, want %d", tt.receiver, tt.sessions, tt.set, got, tt.wants)
		}
	}
}
