package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

func TestOrder_EverySessionIsAppliedInOrderAndOneBatchAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		for i := range 50 {
			b.put(fmt.Sprintf("order-%02d", i), 1+i)
		}
		_, stop := run(t, small(), b, h)
		// More comes while the first are worked on.
		for i := range 50 {
			time.Sleep(3 * time.Millisecond)
			b.put(fmt.Sprintf("order-%02d", i), 25)
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if err := stop(); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		for i := range 50 {
			id := fmt.Sprintf("order-%02d", i)
			if got := h.seen(id); !slices.IsSorted(got) || len(got) != 26+i {
				t.Errorf("session %s: applied %d messages, in order %t; want %d in order", id, len(got), slices.IsSorted(got), 26+i)
			}
		}
	})
}

func TestOrder_AReceiverIsAskedAgainOnlyAfterAFullReceive(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		messages int
		accepts  int
	}{
		{"fewer than asked for end the hold", 7, 1},
		{"all that was asked for and then nothing", 10, 1},
		{"two full receives and a rest in one hold", 25, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.put("a", tt.messages)
				_, stop := run(t, small(), b, newHandler(b))
				until(t, "everything is settled and given back", func() bool {
					_, closes, _ := b.counts()
					return b.left() == 0 && closes == 1
				})
				_ = stop()
				if accepts, _, _ := b.counts(); accepts != tt.accepts {
					t.Errorf("accepts: got %d, want %d", accepts, tt.accepts)
				}
			})
		})
	}
}

func TestOrder_AnEmptySessionIsGivenBackInMilliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 10) // exactly one full receive
		began := time.Now()
		_, _ = run(t, small(), b, newHandler(b))
		until(t, "the session is given back", func() bool { _, closes, _ := b.counts(); return closes == 1 })
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the session was held for %s after its last message, want milliseconds", took)
		}
	})
}

func TestOrder_MessagesOutOfOrderAreNotAppliedAndComeAgainInOrder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// disturb is what the given receive delivers instead.
		receive int
		disturb func(m []session.Message)
		// applied is how many messages may be applied before the hold ends.
		applied int
	}{
		{"within one receive", 1, func(m []session.Message) { m[3], m[4] = m[4], m[3] }, 0},
		{"between two receives", 2, func(m []session.Message) { m[0].SequenceNumber = 1 }, 10},
		{"the same number again", 1, func(m []session.Message) { m[5].SequenceNumber = m[4].SequenceNumber }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				h := newHandler(b)
				b.put("a", 30)
				receives := 0
				b.deliver = func(m []session.Message) []session.Message {
					if receives++; receives == tt.receive {
						tt.disturb(m)
					}
					return m
				}
				appliedByHold := []int{}
				b.onClose = func() { appliedByHold = append(appliedByHold, len(h.seen("a"))) }
				cfg := small()
				cfg.MaxSessions, cfg.AcceptFloor = 1, 1
				engine, stop := run(t, cfg, b, h)
				until(t, "everything is settled", func() bool { return b.left() == 0 })
				_ = stop()
				if got := appliedByHold[0]; got != tt.applied {
					t.Errorf("applied before the inversion: got %d, want %d", got, tt.applied)
				}
				if got := engine.Counts().Inversions.Load(); got != 1 {
					t.Errorf("inversions: got %d, want 1", got)
				}
				if got := h.seen("a"); !slices.IsSorted(got) || len(got) != 30 {
					t.Errorf("applied: got %v, want 1 to 30 in order", got)
				}
			})
		})
	}
}

func TestOrder_AHotSessionLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		limit func(*session.Config)
	}{
		{"by count", func(c *session.Config) { c.HoldMessages = 30 }},
		{"by time", func(c *session.Config) { c.HoldTime = 3 * time.Millisecond }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				h := newHandler(b)
				cfg := small()
				cfg.MaxSessions, cfg.AcceptFloor = 1, 1
				tt.limit(&cfg)
				b.put("hot", 1000)
				_, stop := run(t, cfg, b, h)
				until(t, "the hot session was given back with messages left", func() bool {
					_, closes, _ := b.counts()
					return closes >= 1
				})
				if left := b.left(); left == 0 {
					t.Errorf("the hot session was worked through in one hold, want it given back in between")
				}
				until(t, "everything is settled", func() bool { return b.left() == 0 })
				_ = stop()
				if got := h.seen("hot"); !slices.IsSorted(got) || len(got) != 1000 {
					t.Errorf("applied %d messages, in order %t; want 1000 in order", len(got), slices.IsSorted(got))
				}
			})
		})
	}
}

func TestOrder_WhatFailsIsTriedAgainInPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 10)
		fails := 5
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if fails--; fails >= 0 {
				// Three are stored, the fourth is not.
				return make([]session.Verdict, min(3, len(messages)-1)), errors.New("not primary")
			}
			return make([]session.Verdict, len(messages)), nil
		}
		engine, stop := run(t, small(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if engine.Applying().Current() != nil {
			t.Errorf("trouble after recovery: got %v, want none", engine.Applying().Current())
		}
		_ = stop()
		if accepts, _, _ := b.counts(); accepts != 1 {
			t.Errorf("accepts: got %d, want 1: the session must be kept while it is tried again", accepts)
		}
		if got := h.seen("a"); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
			t.Errorf("applied: got %v, want each once, in order", got)
		}
	})
}

func TestOrder_OnlyWhatHasAVerdictIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 10)
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if messages[0].SequenceNumber == 1 {
				return []session.Verdict{{}, {DeadLetter: true, Reason: "r", Description: "d"}}, errors.New("down")
			}
			return nil, errors.New("down")
		}
		cfg := small()
		cfg.RetryTime = 10 * time.Second
		engine, stop := run(t, cfg, b, h)
		until(t, "the session is given back", func() bool { return engine.Counts().GivenBack.Load() == 1 })
		_ = stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		if got := b.completed["a"]; !slices.Equal(got, []int64{1}) {
			t.Errorf("completed: got %v, want message 1 alone", got)
		}
		if got := b.dead[2]; got.Reason != "r" || got.Description != "d" || len(b.dead) != 1 {
			t.Errorf("dead-lettered: got %v, want message 2 alone with reason and description", b.dead)
		}
	})
}

func TestOrder_ASessionThatCannotBeAppliedIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 5)
		h.apply = func(context.Context, string, []session.Message) ([]session.Verdict, error) {
			return nil, errors.New("unreachable")
		}
		cfg := small()
		began := time.Now()
		engine, stop := run(t, cfg, b, h)
		until(t, "the session is given back", func() bool { return engine.Counts().GivenBack.Load() == 1 })
		if took := time.Since(began); took < cfg.RetryTime {
			t.Errorf("given back after %s, want at least %s of trying in place", took, cfg.RetryTime)
		}
		if calls := h.calls(); calls > 40 {
			t.Errorf("applied %d times within %s, want backoff in between", calls, cfg.RetryTime)
		}
		_ = stop()
	})
}

func TestOrder_ASessionThatWaitsForAMessageIsGivenBackAndSeesItCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if len(messages) < 4 {
				return nil, fmt.Errorf("the fourth: %w", session.ErrNotYet)
			}
			return make([]session.Verdict, len(messages)), nil
		}
		b.put("a", 3)
		engine, stop := run(t, small(), b, h)
		time.Sleep(time.Minute)
		if err := engine.Applying().Current(); err != nil {
			t.Errorf("trouble while a message is waited for: got %v, want none", err)
		}
		if accepts, _, _ := b.counts(); accepts > 61 {
			t.Errorf("accepts within a minute: got %d, want one a second at most", accepts)
		}
		b.put("a", 1)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if got := h.seen("a"); !slices.Equal(got, []int64{1, 2, 3, 4}) {
			t.Errorf("applied: got %v, want each once, in order", got)
		}
	})
}
