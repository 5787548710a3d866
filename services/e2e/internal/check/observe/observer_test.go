package observe

import (
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/validate"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func message(source, session string, version, term, number int64) *azservicebus.ReceivedMessage {
	return &azservicebus.ReceivedMessage{
		MessageID: "m", SessionID: &session, SequenceNumber: &number, EnqueuedTime: &noon,
		ApplicationProperties: map[string]any{propertySource: source, propertyVersion: version, propertyTerm: term, propertyPosition: "0000000500000001.82"},
	}
}

func TestObserver_OnlyMessagesOfTheSourceCount(t *testing.T) {
	t.Parallel()
	o := &Observer{sources: []string{"/db/events"}, names: make(map[string]string), terms: make(map[int64]int)}
	bare := message("/db/events", "a", 1, 1, 3)
	delete(bare.ApplicationProperties, propertyVersion)
	o.add([]*azservicebus.ReceivedMessage{
		message("/db/events", "a", 2, 7, 20), message("/db/events", "a", 1, 6, 10), message("/db/other", "a", 3, 7, 30), bare,
	})
	printOf := func(version int64) expect.Print {
		parts := expect.Seen(message("/db/events", "a", version, 0, 0))
		return parts.Print()
	}
	place := uint64(validate.Fingerprint("0000000500000001.82"))
	want := []validate.Send{
		{Event: validate.Event{Aggregate: "a", Version: 1}, MessageID: "m", Term: 6, Number: 10, Enqueued: noon, Position: 5<<32 | 1, Place: place, Print: printOf(1)},
		{Event: validate.Event{Aggregate: "a", Version: 2}, MessageID: "m", Term: 7, Number: 20, Enqueued: noon, Position: 5<<32 | 1, Place: place, Print: printOf(2)},
	}
	if got := o.Sends(); !reflect.DeepEqual(got, want) {
		t.Errorf("sends:\ngot  %v\nwant %v, in the broker's order", got, want)
	}
	if o.Count() != 2 || o.Foreign().Count != 2 || o.CountOfTerm(7) != 1 || o.CountOfTerm(8) != 0 {
		t.Errorf("counts: got %d, %d foreign, %d of term 7, %d of term 8, want 2, 2, 1, 0", o.Count(), o.Foreign().Count, o.CountOfTerm(7), o.CountOfTerm(8))
	}
}
