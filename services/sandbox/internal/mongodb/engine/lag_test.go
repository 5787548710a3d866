package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

const lag = 3 * time.Second

// settled are the documents of a collection that a majority has, by _id.
func (e *Engine) settled(t *testing.T, ns oplog.Namespace) map[string]string {
	t.Helper()
	docs, err := e.MajorityView(ns).Documents(filter(t), nil, storage.Hint{})
	must(t, err)
	all := map[string]string{}
	for {
		doc, err := docs.Next()
		must(t, err)
		if doc == nil {
			return all
		}
		id, _ := bsonkit.Get(doc, "_id")
		all[id.String()] = doc.String()
	}
}

// follow applies the events that a stream has at present to what it has shown before.
func follow(t *testing.T, s *Stream, shown map[string]string) {
	t.Helper()
	for {
		event, err := s.Next()
		must(t, err)
		if event == nil {
			return
		}
		id := event.Doc.Lookup("documentKey", "_id").String()
		delete(shown, id)
		if full, there := event.Doc.Lookup("fullDocument").DocumentOK(); there {
			shown[id] = full.String()
		}
	}
}

func TestLag_StreamsReadsAndWritersGetAWriteAtOneTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{Majority: 5 * time.Millisecond, JournalInterval: 100 * time.Millisecond, Lag: lag})
		s := watch(t, e, StreamOptions{NS: things})
		began := time.Now()
		e.mustInsert(t, Write{Majority: true}, doc(t, "_id", 1))
		answered := make(chan time.Duration, 1)
		go func() {
			_ = e.AwaitMajority(t.Context())
			answered <- time.Since(began)
		}()

		time.Sleep(lag)
		if event, err := s.Next(); event != nil || err != nil || len(e.settled(t, things)) > 0 {
			t.Errorf("got %v and %v of the stream, and %v of a majority before it has the write, want nothing", event, err, e.settled(t, things))
		}
		if got := e.contents(t, nil, things); len(got) != 1 {
			t.Errorf("got %v of the primary, want the document", got)
		}
		if e.CommittedTime() >= e.OperationTime() || s.Place().Time > e.CommittedTime()+1 {
			t.Errorf("got the times %s written, %s of a majority, %s of the stream", e.OperationTime(), e.CommittedTime(), s.Place().Time)
		}
		must(t, s.Wait(t.Context()))
		wantTime(t, "the stream", time.Since(began), lag+5*time.Millisecond)
		wantTime(t, "the writer", <-answered, lag+5*time.Millisecond)
		if got := e.settled(t, things); len(got) != 1 || e.CommittedTime() != e.OperationTime() {
			t.Errorf("got %v of a majority and the time %s, want the document and %s", got, e.CommittedTime(), e.OperationTime())
		}
		seenAfter(t, s)

		e.mustInsert(t, Write{}, doc(t, "_id", 2))
		wantTime(t, "a write that nobody waits for", seenAfter(t, s), lag+100*time.Millisecond)
	})
}

func TestLag_TheJournalOfOneMemberIsNotBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{Majority: 5 * time.Millisecond, JournalInterval: time.Hour, Lag: lag})
		s := watch(t, e, StreamOptions{NS: things})
		began := time.Now()
		e.mustInsert(t, Write{Majority: true}, doc(t, "_id", 1))
		must(t, e.AwaitJournal(t.Context()))
		wantTime(t, "the journal", time.Since(began), 5*time.Millisecond)
		wantTime(t, "the stream", seenAfter(t, s), lag)
	})
}

func TestLag_StreamsAndReadsAgreeWhateverIsWrittenAndHoweverTheLagChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				draw := rand.New(rand.NewPCG(seed, 0))
				e := New(Config{})
				e.SetPace(Pace{JournalInterval: 100 * time.Millisecond, Lag: lag})
				s := watch(t, e, StreamOptions{NS: things, UpdateLookup: true})
				shown := map[string]string{}
				for i := range 300 {
					step(t, e, draw, i)
					time.Sleep(time.Duration(draw.IntN(80)) * time.Millisecond)
					synctest.Wait()
					follow(t, s, shown)
					if got := e.settled(t, things); !maps.Equal(got, shown) {
						t.Fatalf("step %d: a majority and the stream disagree: %s", i, difference(got, shown))
					}
				}
				e.SetPace(Pace{JournalInterval: time.Millisecond})
				must(t, e.AwaitMajority(t.Context()))
				follow(t, s, shown)
				present, err := e.View(nil, things)
				must(t, err)
				if got := e.settled(t, things); !maps.Equal(got, shown) || len(got) != present.Count() {
					t.Errorf("got %d documents of a majority, %d of the stream and %d of the primary at the end", len(got), len(shown), present.Count())
				}
			})
		})
	}
}

// difference tells what two contents do not share.
func difference(majority, stream map[string]string) string {
	var all []string
	for id := range majority {
		if majority[id] != stream[id] {
			all = append(all, fmt.Sprintf("%s, but %q", majority[id], stream[id]))
		}
	}
	for id := range stream {
		if _, there := majority[id]; !there {
			all = append(all, "nothing, but "+stream[id])
		}
	}
	return fmt.Sprint(all)
}

// step writes something, or changes the pace.
func step(t *testing.T, e *Engine, draw *rand.Rand, i int) {
	t.Helper()
	w := Write{Majority: draw.IntN(2) == 0}
	switch draw.IntN(10) {
	case 0, 1, 2:
		_, err := e.Insert(t.Context(), w, things, []bson.Raw{doc(t, "_id", 1000+i)})
		must(t, err)
	case 3, 4, 5:
		_, err := e.Update(t.Context(), w, things, set(t, 1000+draw.IntN(i+1), "n", i))
		must(t, err)
	case 6:
		_, err := e.Delete(t.Context(), w, things, Selection{Filter: filter(t, "_id", 1000+draw.IntN(i+1))})
		must(t, err)
	case 7:
		go func() { _ = e.AwaitMajority(t.Context()) }()
	case 8:
		txn := e.Open(oplog.TxnID{Session: doc(t, "id", i), Number: int64(i)})
		_, err := e.Insert(t.Context(), Write{Txn: txn}, things, []bson.Raw{doc(t, "_id", 5000+i), doc(t, "_id", 9000+i)})
		must(t, err)
		must(t, txn.Commit())
	case 9:
		if draw.IntN(10) == 0 {
			e.SetPace(Pace{JournalInterval: 100 * time.Millisecond, Lag: time.Duration(draw.IntN(5)) * time.Second})
		}
	}
}

func TestLag_FewGenerationsAreKeptAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{Lag: lag})
		s := watch(t, e, StreamOptions{NS: things})
		began := time.Now()
		e.mustInsert(t, Write{}, doc(t, "_id", 0))
		for i := range 1000 {
			time.Sleep(time.Millisecond)
			e.mustInsert(t, Write{}, doc(t, "_id", 1+i))
		}
		if n := len(e.unsettled.ended); n < 10 || n > mostGenerations+1 {
			t.Errorf("got %d generations of writes without a pause, want more than one, and no more than %d", n, mostGenerations+1)
		}
		must(t, s.Wait(t.Context()))
		if late := time.Since(began) - lag; late > lag/mostGenerations {
			t.Errorf("got the first write %s late, want no more than %s", late, lag/mostGenerations)
		}
	})
}

func TestLag_WhatWaitsIsHadAtOnceWhenTheLagEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		for i, after := range []Pace{{}, {JournalInterval: time.Minute}} {
			e.SetPace(Pace{Lag: time.Hour})
			s := watch(t, e, StreamOptions{NS: things})
			e.mustInsert(t, Write{Majority: true}, doc(t, "_id", 2*i))
			e.mustInsert(t, Write{Majority: true}, doc(t, "_id", 2*i+1))
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := e.AwaitMajority(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v of a writer that cannot wait, want a timeout", err)
			}
			cancel()
			e.SetPace(after)
			wantTime(t, "the stream", seenAfter(t, s), 0)
			wantTime(t, "the stream", seenAfter(t, s), 0)
			present, err := e.View(nil, things)
			must(t, err)
			if n := e.MajorityView(things).Count(); n != present.Count() {
				t.Errorf("got %d documents of a majority, want %d", n, present.Count())
			}
		}
	})
}

func TestLag_AStreamBeginsWithWhatIsWrittenNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{Lag: lag})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		s := watch(t, e, StreamOptions{NS: things})
		time.Sleep(time.Second)
		e.mustInsert(t, Write{}, doc(t, "_id", 2))
		must(t, s.Wait(t.Context()))
		event, err := s.Next()
		must(t, err)
		if event == nil || event.Doc.Lookup("documentKey", "_id").Int32() != 2 {
			t.Errorf("got %v, want the document that was written after the stream was opened", event)
		}
	})
}

func TestLag_CollectionsThatComeAndGoAreWithTheirDocuments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		other := oplog.Namespace{DB: "test", Collection: "other"}
		e.mustInsert(t, Write{Majority: true}, doc(t, "_id", 1))
		e.SetPace(Pace{Lag: lag})
		has := func(when string, want ...bool) {
			t.Helper()
			got := []bool{e.MajorityView(things).Exists(), e.MajorityView(other).Exists()}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got the collections %v, want %v", when, got, want)
			}
		}
		must(t, e.Rename(t.Context(), things, other, false))
		has("before a majority has the new name", true, false)
		time.Sleep(time.Second)
		_, err := e.Drop(t.Context(), other)
		must(t, err)
		must(t, e.CreateCollection(t.Context(), nil, things, CollectionOptions{}))
		has("before a majority has anything", true, false)
		time.Sleep(lag - time.Second)
		synctest.Wait()
		has("when a majority has the new name", false, true)
		time.Sleep(time.Second)
		synctest.Wait()
		has("when a majority has everything", true, false)
	})
}

func TestLag_AReadWaitsForATimeAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{JournalInterval: time.Minute, Lag: lag})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		at, began := e.OperationTime(), time.Now()
		go func() {
			time.Sleep(time.Second)
			e.mustInsert(t, Write{}, doc(t, "_id", 2))
			e.WriteJournal()
		}()
		must(t, e.AwaitTime(t.Context(), at))
		wantTime(t, "a read after a write", time.Since(began), lag)
		if n := e.MajorityView(things).Count(); n != 1 {
			t.Errorf("got %d documents, want the first", n)
		}
		must(t, e.AwaitTime(t.Context(), at))
		wantTime(t, "a read after what a majority has", time.Since(began), lag)
	})
}

func TestLag_TailsAndTheOplogShowWhatThePrimaryHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{Lag: time.Hour})
		must(t, e.CreateCollection(t.Context(), nil, things, CollectionOptions{Capped: &Capped{Bytes: 1 << 20}}))
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		tail, err := e.Tail(things, filter(t))
		must(t, err)
		for _, want := range []bool{true, false} {
			if got, err := tail.Next(); err != nil || (got != nil) != want {
				t.Errorf("got %v and %v, want a document: %v", got, err, want)
			}
		}
		began := time.Now()
		go func() { e.mustInsert(t, Write{}, doc(t, "_id", 2)) }()
		must(t, tail.Wait(t.Context()))
		wantTime(t, "the tail", time.Since(began), 0)
		last, err := e.OplogEntries(true).Next()
		must(t, err)
		if id := last.Lookup("o", "_id"); id.Int32() != 2 {
			t.Errorf("got %s as the last entry of the oplog, want the second insert", last)
		}
	})
}
