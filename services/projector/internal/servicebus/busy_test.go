package servicebus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/session"
)

func TestBusy_TheServicesPauseIsHonoured(t *testing.T) {
	t.Parallel()
	says := func(text string) error {
		return fmt.Errorf("settle: %w", &amqp.Error{Condition: "com.microsoft:server-busy", Description: text})
	}
	tests := []struct {
		name string
		err  error
		want time.Duration // 0: not throttled
	}{
		{"with a pause", says("The request was terminated because the entity is being throttled. Error code : 50002. Please wait 4 seconds and try again."), 4 * time.Second},
		{"without one", says("throttled"), 2 * time.Second},
		{"with an odd one", says("wait 0 seconds"), 2 * time.Second},
		{"with a very long one", says("please wait 9999 seconds"), time.Minute},
		{"a lost lock", &amqp.Error{Condition: "com.microsoft:session-lock-lost", Description: "wait 4 seconds"}, 0},
		{"none", nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, is := errors.AsType[*session.BusyError](orBusy(tt.err))
			if is != (tt.want > 0) || is && got.Pause != tt.want {
				t.Errorf("got %+v and %t, want a pause of %s", got, is, tt.want)
			}
			if !errors.Is(orBusy(tt.err), tt.err) {
				t.Errorf("got %v, want the service's error kept", orBusy(tt.err))
			}
		})
	}
}
