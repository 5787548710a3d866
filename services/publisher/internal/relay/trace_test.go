package relay_test

import (
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

func TestTrace_ARetryIsOfTheSameSpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		sends := 0
		r.topic.Decide = func([]contract.Message) relaytest.Outcome { // under the topic's lock
			if sends++; sends <= 3 {
				return relaytest.Outcome{Err: failure(relay.Transient)}
			}
			return relaytest.Outcome{}
		}
		r.add(1, 1, hot)
		read := time.Now()
		r.start(t)
		time.Sleep(time.Minute)
		spans := r.tracer.Spans()
		if len(spans) != 1 {
			t.Fatalf("%d spans, want 1 for 1 change", len(spans))
		}
		want := relaytest.Span{MessageID: r.topic.Messages()[0].ID, ReadAt: read, Failures: 3, Ends: 1}
		if got := spans[0]; got.MessageID != want.MessageID || !got.ReadAt.Equal(read) || got.Failures != 3 || got.Ends != 1 || got.Late != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func TestTrace_AChangeThatIsTooLargeEndsItsSpanAsParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func([]contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Err: failure(relay.TooLarge)}
		}
		r.add(1, 1, hot)
		r.start(t)
		time.Sleep(time.Second)
		spans := r.tracer.Spans()
		if len(spans) != 1 || spans[0].Ends != 1 || spans[0].Failures != 0 || spans[0].Reason == "" {
			t.Errorf("got %+v, want one span that ended as parked, with its reason", spans)
		}
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}
