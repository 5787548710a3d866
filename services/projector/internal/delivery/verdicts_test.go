package delivery_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
)

// passed are events of no projection's.
func passed(t *testing.T, versions ...int64) []session.Message {
	t.Helper()
	var messages []session.Message
	for _, n := range versions {
		messages = append(messages, message(t, "a", n, "NotFollowed", `{}`))
	}
	return messages
}

// What comes again says nothing about what comes after it: an earlier hold may have
// dealt with that.
func TestFollow_NothingIsMissingAfterWhatComesAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before []session.Message
		hold   [][]session.Message
		want   int64
	}{
		"some of what was applied, then the next": {happened(t, "a", 1, 2, 3, 4, 5), [][]session.Message{happened(t, "a", 1, 2), happened(t, "a", 6)}, 0},
		"in one batch":                           {happened(t, "a", 1, 2, 3), [][]session.Message{happened(t, "a", 1, 3, 4)}, 0},
		"one that another hold has applied":      {happened(t, "a", 3), [][]session.Message{happened(t, "a", 3), happened(t, "a", 7)}, 0},
		"passed by again, then the next":         {passed(t, 1, 2, 3), [][]session.Message{passed(t, 1), happened(t, "a", 4)}, 0},
		"missing after what comes again":         {happened(t, "a", 1, 2), [][]session.Message{happened(t, "a", 1, 2, 3, 5)}, 1},
		"missing though an older one came again": {nil, [][]session.Message{happened(t, "a", 1, 2, 3), happened(t, "a", 2), happened(t, "a", 6)}, 2},
		"missing behind one that is passed by":   {nil, [][]session.Message{happened(t, "a", 1), passed(t, 2), happened(t, "a", 5)}, 2},
		"missing before one that is passed by":   {nil, [][]session.Message{happened(t, "a", 1), passed(t, 3), happened(t, "a", 4)}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if _, err := f.Hold("a").Apply(t.Context(), tt.before); err != nil {
				t.Fatal(err)
			}
			hold := f.Hold("a")
			for _, batch := range tt.hold {
				if _, err := hold.Apply(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.Counts().VersionGaps.Load(); got != tt.want {
				t.Errorf("got %d versions missing, want %d", got, tt.want)
			}
		})
	}
}

// A hold that has lost its session may be behind another's.
func TestFollow_WhatAnotherHoldHasDealtWithIsNotMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	late, next := f.Hold("a"), f.Hold("a")
	for _, step := range []struct {
		hold     session.Applier
		versions []int64
	}{{late, []int64{1}}, {next, []int64{2, 3, 4, 5}}, {late, []int64{2}}, {late, []int64{6}}} {
		if _, err := step.hold.Apply(t.Context(), happened(t, "a", step.versions...)); err != nil {
			t.Fatal(err)
		}
	}
	if c := f.Counts(); c.Repeated.Load() != 1 || c.VersionGaps.Load() != 0 {
		t.Errorf("got %d repeated and %d versions missing, want one and none", c.Repeated.Load(), c.VersionGaps.Load())
	}
}

// What was parked and redriven, or discarded, was dealt with by others.
func TestFollow_WhatIsParkedOrDiscardedIsNotMissing(t *testing.T) {
	t.Parallel()
	t.Run("redriven", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStand(t, 1, 0, 2)
			replica := s.replicas[0]
			hold := replica.Hold("a")
			if _, err := hold.Apply(t.Context(), happened(t, "a", 1, 2, 3)); err != nil {
				t.Fatal(err)
			}
			done, err := delivery.Redrive(t.Context(), s.orders, s.store, s.store, delivery.Gaps{}, "a")
			if err != nil || done.Applied != 2 || !done.Lifted {
				t.Fatalf("got %+v and %v, want two redriven", done, err)
			}
			if _, err := hold.Apply(t.Context(), happened(t, "a", 4)); err != nil {
				t.Fatal(err)
			}
			if c := replica.Counts(); c.Applied.Load() != 2 || c.VersionGaps.Load() != 0 {
				t.Errorf("got %d applied and %d versions missing, want two and none", c.Applied.Load(), c.VersionGaps.Load())
			}
		})
	})
	t.Run("discarded", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		bad := discardSecond(t, f.store)
		messages := slices.Concat(happened(t, "a", 1), []session.Message{bad}, happened(t, "a", 3))
		if _, err := f.Hold("a").Apply(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		if c := f.Counts(); c.Discarded.Load() != 1 || c.VersionGaps.Load() != 0 {
			t.Errorf("got %d discarded and %d versions missing, want one and none", c.Discarded.Load(), c.VersionGaps.Load())
		}
	})
}

func TestDelivery_AppliedAndRepeatedMessagesAreCompleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 2 {
		verdicts, err := f.Hold("a").Apply(t.Context(), append(happened(t, "a", 1, 2, 3), message(t, "a", 4, "NotFollowed", `{}`)))
		if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 4)) {
			t.Fatalf("got %v and %v, want four completed", verdicts, err)
		}
	}
	c := f.Counts()
	if c.Applied.Load() != 3 || c.Repeated.Load() != 3 || c.PassedBy.Load() != 2 {
		t.Errorf("applied %d, repeated %d, passed by %d; want 3, 3, 2", c.Applied.Load(), c.Repeated.Load(), c.PassedBy.Load())
	}
	if got, want := f.fields(t, "orders", "a"), `{"events":3}{"last":3}{"seen":[1,2,3]}`; got != want {
		t.Errorf("document: got %s, want %s", got, want)
	}
	if !slices.Equal(f.observer.readable, []string{"a-1", "a-2", "a-3"}) {
		t.Errorf("readable: got %v, want each once", f.observer.readable)
	}
}

func TestDelivery_MissingVersionsAreCountedWithinAHold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		batches [][]int64
		want    int64
	}{
		{"none missing", [][]int64{{1, 2}, {3}}, 0},
		{"one in a batch", [][]int64{{1, 3}}, 1},
		{"three between batches", [][]int64{{1}, {5}}, 3},
		{"a rewind is no gap", [][]int64{{4, 5}, {2, 3, 4, 5, 6}}, 0},
		{"the first of a hold follows nothing", [][]int64{{7}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			hold := f.Hold("a")
			for _, batch := range tt.batches {
				if _, err := hold.Apply(t.Context(), happened(t, "a", batch...)); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.Counts().VersionGaps.Load(); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
