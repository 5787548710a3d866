package servicebus

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func client(t *testing.T) *azservicebus.Client {
	t.Helper()
	c, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A send may begin on a link that is being closed: it has the link already, and
// the close must see its end.
func TestLink_IsNotClosedBeforeItsUsersAreDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, closed := newLink(client(t)), make(chan struct{})
		l.users.Add(1)
		go func() { defer close(closed); l.close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("the link is closed while it has a user")
		default:
		}
		if err := l.whole(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		l.users.Done()
		<-closed
	})
}

// Sends take over each other's goroutines, and one that hangs has its own.
func TestLink_ASendDoesNotWaitForOneThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLink(client(t))
		answer := make(chan struct{})
		var hanging sync.WaitGroup
		send := func(send func(context.Context) error) {
			if err := l.whole(t.Context(), send); err != nil {
				t.Error(err)
			}
		}
		for range 3 {
			send(func(context.Context) error { return nil })
			synctest.Wait()
			hanging.Go(func() { send(func(context.Context) error { <-answer; return nil }) })
			synctest.Wait()
		}
		send(func(context.Context) error { return nil })
		close(answer)
		hanging.Wait()
		l.close()
	})
}
