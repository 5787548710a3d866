package servicebus_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/session"
)

// throttled is a world in which the first settlements use up the credits of an hour.
const throttled = `{"service_bus": {"credits_per_second": 1, "costs": {"settle": 1000}}}`

// What the service refuses to settle comes again, and is not said to be settled, though
// the client tries again by itself.
func TestSettle_WhatIsThrottledIsNotSaidToBeSettled(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]session.Verdict{
		"completed":     {},
		"dead-lettered": {DeadLetter: true, Reason: "Bad", Description: "in a test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sandboxtest.StartWith(t, sandboxtest.Topics("throttled"))
			sandboxtest.Send(t, e, "throttled", message("1", "a"), message("2", "a"), message("3", "a"))
			s := openAs(t, servicebus.Config{ConnectionString: e.ServiceBus, Topic: "throttled", Subscription: "projector"})
			r := mustAccept(t, s, 0)
			messages := receiveAll(t, r, 3)
			e.Become(t, throttled)
			var want []string // that are not settled
			for _, m := range messages {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				err := r.Settle(ctx, m, v)
				cancel()
				if _, again := errors.AsType[*session.BusyError](err); again {
					t.Errorf("settle %q: got %v, want no error after which it is tried again", m.ID, err)
				}
				if err != nil {
					want = append(want, m.ID)
				}
			}
			e.Become(t, `{"service_bus": {}}`)
			release(t, r)
			if len(want) < 2 {
				t.Errorf("%v were not settled, want those that were refused", want)
			}
			again := mustAccept(t, s, 0)
			var got []string
			for _, m := range receiveAll(t, again, len(want)) {
				got = append(got, m.ID)
			}
			release(t, again)
			if !slices.Equal(got, want) {
				t.Errorf("%v came again, want %v", got, want)
			}
		})
	}
}

// receiveAll receives as many messages.
func receiveAll(t *testing.T, r session.Receiver, n int) (all []session.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(all) < n {
		some, err := r.Receive(ctx, n-len(all))
		if all = append(all, some...); err != nil {
			t.Fatalf("receive: got %d messages and %v, want %d", len(all), err, n)
		}
	}
	return all
}

// A dead letter that is said to be removed is.
func TestDeadLetters_WhatIsThrottledIsNotSaidToBeRemoved(t *testing.T) {
	t.Parallel()
	e := sandboxtest.StartWith(t, sandboxtest.Topics("throttled"))
	cfg := servicebus.Config{ConnectionString: e.ServiceBus, Topic: "throttled", Subscription: "projector"}
	sandboxtest.Send(t, e, "throttled", message("1", "a"), message("2", "a"), message("3", "a"))
	r := mustAccept(t, openAs(t, cfg), 0)
	for _, m := range receiveAll(t, r, 3) {
		if err := r.Settle(t.Context(), m, session.Verdict{DeadLetter: true, Reason: "Bad"}); err != nil {
			t.Fatal(err)
		}
	}
	release(t, r)
	dead, err := servicebus.OpenDeadLetters(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close(context.WithoutCancel(t.Context())) })
	var numbers []int64
	if err := dead.Peek(t.Context(), func(d servicebus.DeadLetter) error {
		numbers = append(numbers, d.SequenceNumber)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var removed, left []int64
	// The first comes alone, and the others together.
	err = dead.DiscardMany(ctx, 30*time.Second, numbers, func(d servicebus.DeadLetter, remove servicebus.Removal) error {
		if d.ID == "2" {
			e.Become(t, throttled)
		}
		if d.ID == "3" {
			defer time.AfterFunc(6*time.Second, cancel).Stop() // the client tries again after 5.2 at most
		}
		err := remove()
		if err == nil {
			removed = append(removed, d.SequenceNumber)
		}
		if d.ID == "3" {
			e.Become(t, `{"service_bus": {}}`)
		}
		return err
	})
	if err == nil {
		t.Error("discard: got no error, want that it was refused")
	}
	for _, number := range numbers {
		_, found, err := dead.At(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			left = append(left, number)
		}
	}
	if !slices.Equal(slices.Concat(removed, left), numbers) {
		t.Errorf("removed %v of %v, and %v are left", removed, numbers, left)
	}
}
