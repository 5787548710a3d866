package busfaults_test

import (
	"testing"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/faults"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/busfaults"
	"changerelay/services/sandbox/internal/servicebus/emulatorconfig"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// registry has the faults of the default namespace.
func registry(t *testing.T) (*faults.Registry, []faults.Kind) {
	t.Helper()
	b, err := broker.New(broker.Config{})
	must(t, err)
	must(t, emulatorconfig.Default().Apply(b))
	s := amqpserver.New(amqpserver.Config{Broker: b, Logger: zerolog.Nop()})
	kinds := busfaults.Kinds(b, s)
	return faults.New(kinds...), kinds
}

// TestBusFaults_EveryExampleStartsItsFault keeps what GET /faults shows true.
func TestBusFaults_EveryExampleStartsItsFault(t *testing.T) {
	t.Parallel()
	r, kinds := registry(t)
	for _, kind := range kinds {
		if _, err := r.Start([]byte(kind.Example)); err != nil {
			t.Errorf("%s: got %v, want its example to start it", kind.Name, err)
		}
	}
	r.EndAll()
}

func TestBusFaults_AFaultThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	r, _ := registry(t)
	for _, body := range []string{
		`{"kind":"servicebus.throttle","path":"none"}`,
		`{"kind":"servicebus.delay","path":"none","delay":"1s"}`,
		`{"kind":"servicebus.redeliver","path":"none","times":1}`,
		`{"kind":"servicebus.redeliver","path":"changes/Subscriptions/projector"}`,
		`{"kind":"servicebus.delay","path":"changes","delay":"1s","of":["peek"]}`,
		`{"kind":"servicebus.lose-session-locks","path":"none"}`,
	} {
		if report, err := r.Start([]byte(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", body, report)
		}
	}
}
