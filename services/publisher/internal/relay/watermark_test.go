package relay

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"changerelay/pkg/contract"
)

func point(n int) Point {
	return Point{Token: fmt.Append(nil, n), Position: contract.Position(fmt.Sprint(n))}
}

// TestWatermark_TheWatermarkIsTheEndOfTheFinishedPrefix compares the watermark with a
// model that remembers everything.
func TestWatermark_TheWatermarkIsTheEndOfTheFinishedPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const size = 10
		window := rapid.IntRange(1, 8).Draw(t, "window")
		maxBytes := int64(rapid.IntRange(1, 8).Draw(t, "sizes")) * size
		w := newWatermark(window, maxBytes)
		var finished []bool // the model: by number
		want := Point{}
		unfinished := map[uint64]bool{}
		prefix := 0
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				number, ok := w.tryBegin(point(len(finished)), size)
				full := len(finished)-prefix == window || len(unfinished) > 0 && int64(len(unfinished)+1)*size > maxBytes
				if ok == full {
					t.Fatalf("begin = %v with %d in the window and %d unfinished", ok, len(finished)-prefix, len(unfinished))
				}
				if ok {
					unfinished[number] = true
					finished = append(finished, false)
				}
			},
			"finish": func(t *rapid.T) {
				if len(unfinished) == 0 {
					t.Skip("nothing is unfinished")
				}
				var numbers []uint64
				for n := range uint64(len(finished)) {
					if unfinished[n] {
						numbers = append(numbers, n)
					}
				}
				number := rapid.SampledFrom(numbers).Draw(t, "number")
				delete(unfinished, number)
				finished[number] = true
				w.finish(number)
				for prefix < len(finished) && finished[prefix] {
					want = point(prefix)
					prefix++
				}
			},
			"idle": func(*rapid.T) {
				w.idleAt(point(-len(finished)))
				if prefix == len(finished) {
					want = point(-len(finished))
				}
			},
			"": func(t *rapid.T) {
				if got := w.read(); string(got.Token) != string(want.Token) || got.Position != want.Position {
					t.Fatalf("watermark is at %s, want %s", got.Token, want.Token)
				}
				count, bytes := w.unfinished()
				if count != len(finished)-prefix || bytes != int64(len(unfinished))*size {
					t.Fatalf("%d changes and %d bytes in the window, want %d and %d", count, bytes, len(finished)-prefix, len(unfinished)*size)
				}
			},
		})
	})
}

func TestWatermark_AFullWindowWaitsUntilAChangeIsFinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatermark(2, 100)
		for n := range 2 {
			if _, err := w.begin(t.Context(), point(n), 10); err != nil {
				t.Fatal(err)
			}
		}
		begun := make(chan uint64)
		go func() {
			number, _ := w.begin(t.Context(), point(2), 10)
			begun <- number
		}()
		synctest.Wait()
		select {
		case <-begun:
			t.Fatal("a third change got into a window of two")
		default:
		}
		w.finish(1) // out of order: it makes no room
		synctest.Wait()
		w.finish(0)
		if number := <-begun; number != 2 {
			t.Errorf("the third change has number %d, want 2", number)
		}
	})
}

func TestWatermark_AChangeLargerThanTheWindowGoesAlone(t *testing.T) {
	t.Parallel()
	w := newWatermark(10, 100)
	if _, ok := w.tryBegin(point(0), 1000); !ok {
		t.Fatal("a large change does not get into an empty window")
	}
	if _, ok := w.tryBegin(point(1), 1); ok {
		t.Error("another change got in beside it")
	}
	w.finish(0)
	if _, ok := w.tryBegin(point(1), 1); !ok {
		t.Error("the window is not free after it")
	}
}

func TestWatermark_WaitingForRoomEndsWithTheContext(t *testing.T) {
	t.Parallel()
	w := newWatermark(1, 100)
	if _, err := w.begin(t.Context(), point(0), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDrain)
	if _, err := w.begin(ctx, point(1), 1); !errors.Is(err, errDrain) {
		t.Errorf("begin = %v, want the context's cause", err)
	}
}

func TestWatermark_FinishingAChangeTwiceIsABug(t *testing.T) {
	t.Parallel()
	w := newWatermark(2, 100)
	for n := range 2 {
		if _, err := w.begin(t.Context(), point(n), 1); err != nil {
			t.Fatal(err)
		}
	}
	w.finish(1)
	defer func() {
		if recover() == nil {
			t.Error("finishing a change twice went unnoticed")
		}
	}()
	w.finish(1)
}
