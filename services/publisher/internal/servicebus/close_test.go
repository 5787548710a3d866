package servicebus

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// A send may begin on a link that is being closed: it has the link already, and
// the close must see its end.
func TestLink_IsNotClosedBeforeItsUsersAreDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k", nil)
		if err != nil {
			t.Fatal(err)
		}
		l, closed := &link{client: client}, make(chan struct{})
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
