package app

import "testing"

func TestConnections_AreAsManyAsTheReceiverNeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		receiver             string
		sessions, set, wants int
	}{
		{receiverAMQP, 64, 0, 1},
		{receiverAMQP, 257, 0, 2},
		{receiverSDK, 64, 0, 8},
		{receiverSDK, 65, 0, 9},
		{receiverAMQP, 64, 3, 3},
	} {
		c := Config{Receiver: tt.receiver, MaxSessions: tt.sessions, Connections: tt.set}
		if got := c.connections(); got != tt.wants {
			t.Errorf("%s with %d sessions and %d set: got %d connections, want %d", tt.receiver, tt.sessions, tt.set, got, tt.wants)
		}
	}
}
