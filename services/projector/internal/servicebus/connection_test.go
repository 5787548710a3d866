package servicebus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"
)

func TestConnection_IsReplacedWhereNothingComesAndNoAcceptIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replaced := 0
		c := &connection{
			dial:    func(_, _ func()) (*azservicebus.Client, error) { return &azservicebus.Client{}, nil },
			discard: func(*azservicebus.Client) { replaced++ },
			log:     zerolog.Nop(),
		}
		accepts := func(n int) {
			for range n {
				client, _ := c.current()
				c.waits()
				time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
				c.unanswered(client, time.Second)
			}
		}
		accepts(2)
		c.heard()
		accepts(2)
		if replaced != 0 {
			t.Error("a connection over which something has come in the time of three accepts is replaced")
		}
		accepts(1)
		if replaced != 1 {
			t.Errorf("replaced %d times after three accepts in which nothing came, want once", replaced)
		}
		accepts(2)
		if replaced != 1 {
			t.Error("the new connection is replaced before it had its time")
		}
	})
}
