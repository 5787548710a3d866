package projectorbench

import (
	"testing"
	"time"
)

// What is carried twice lengthens nothing but what was carried; what came before
// the messages does not count as their time.
func TestMeter_TellsHowLongTheMessagesCame(t *testing.T) {
	t.Parallel()
	at := time.Now()
	m := &meter{all: 900_000, reads: []reading{
		{at, 2_000}, {at.Add(time.Second), 70_000}, {at.Add(2 * time.Second), 400_000}, {at.Add(3 * time.Second), 900_000},
	}}
	if all, flowing := m.carried(400_000); all != 900_000 || flowing != time.Second {
		t.Errorf("got %d bytes, the messages in %v, want 900,000 and 1s", all, flowing)
	}
	if _, flowing := m.carried(1_000_000); flowing != 0 {
		t.Errorf("messages that did not come: got %v, want 0", flowing)
	}
}
