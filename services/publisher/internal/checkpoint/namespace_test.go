package checkpoint_test

import (
	"testing"

	"changerelay/services/publisher/internal/checkpoint"
)

func TestSettings_ANamespaceIsAnotherByItsName(t *testing.T) {
	t.Parallel()
	const same = checkpoint.Meaning(-1)
	for _, tt := range []struct {
		was, is string
		want    checkpoint.Meaning
	}{
		{"a.servicebus.example", "a.servicebus.example", same},
		{"a.servicebus.example", "A.servicebus.example.", same},
		{"a.servicebus.example", "a.servicebus.example:5671", same},
		{"a.servicebus.example", "b.servicebus.example", checkpoint.Another},
		{"a.servicebus.example:5671", "b.servicebus.example:5671", checkpoint.Another},
		{"a.servicebus.example", "10.0.0.7", checkpoint.Another},
		{"127.0.0.1:5672", "a.servicebus.example", checkpoint.Another},
		{"127.0.0.1:5672", "127.0.0.1:5673", checkpoint.Warned},
		{"127.0.0.1:5672", "localhost:5672", checkpoint.Warned},
		{"[::1]:5672", "127.0.0.1:5672", checkpoint.Warned},
		{checkpoint.Namespace("sandbox", true), checkpoint.Namespace("localhost:40001", true), checkpoint.Warned},
		{checkpoint.Namespace("sandbox", true), checkpoint.Namespace("proxy", true), checkpoint.Warned},
		{checkpoint.Namespace("sandbox", true), "a.servicebus.example", checkpoint.Another},
		{"127.0.0.1:5672", checkpoint.Namespace("127.0.0.1:5672", true), same}, // of a record from before
	} {
		got := same
		for _, change := range (&checkpoint.Record{Settings: checkpoint.Settings{"SERVICEBUS_NAMESPACE": tt.was}}).Changes(checkpoint.Settings{"SERVICEBUS_NAMESPACE": tt.is}) {
			got = change.Meaning
		}
		if got != tt.want {
			t.Errorf("%q after %q means %d, want %d", tt.is, tt.was, got, tt.want)
		}
	}
}
