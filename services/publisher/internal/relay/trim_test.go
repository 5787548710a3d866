package relay

import "testing"

func TestTrim_GivesBackTheLanesOfWhatIsNotSent(t *testing.T) {
	t.Parallel()
	s := laneSender{Relay: &Relay{config: Config{Mixed: true, BatchSize: 10, BatchBytes: 100}, lanes: newLanes(10)}}
	for n, name := range []string{"a", "b", "c", "b"} {
		s.lanes.add(name, &item{number: uint64(n)})
	}
	room := s.config.BatchBytes
	s.holdMore(&room)
	s.trim(2)
	if len(s.items) != 2 || s.items[0].number != 0 || s.items[1].number != 1 {
		t.Errorf("%d items are left, want the first of a and of b", len(s.items))
	}
	if len(s.held) != 2 || s.held[0].aggregateID != "a" || s.held[1].aggregateID != "b" || s.held[1].count != 1 {
		t.Errorf("held are %+v, want a and b with one item each", s.held)
	}
	if len(s.lanes.ready) != 1 || (<-s.lanes.ready).aggregateID != "c" {
		t.Error("the lane of c is not ready again")
	}
}
