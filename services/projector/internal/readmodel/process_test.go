package readmodel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
)

func TestProcess_ADeadOneIsNoticedAndWhatItDiedOfCounted(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	ctx := t.Context()
	beat := func(p *readmodel.Process, first, want bool) {
		t.Helper()
		if err := p.Beat(ctx, first); err != nil || p.CrashedLately() != want {
			t.Fatalf("beat: got a recent crash %t and %v, want %t", p.CrashedLately(), err, want)
		}
	}
	died := func(p *readmodel.Process, aggregate, message string, want int) {
		t.Helper()
		got, err := p.Deaths(ctx, aggregate)
		n := 0
		for _, death := range got {
			if slices.Contains(death.Messages, message) {
				n++
			}
		}
		if err != nil || n != want {
			t.Errorf("deaths: got %v and %v, want %d with %s", got, err, want, message)
		}
	}
	calm := s.Process("calm-1", "calm")
	beat(calm, true, false)
	if err := calm.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	first := s.Process("pod-1", "pod")
	beat(first, true, false) // the other one has stopped as asked
	steps := []error{
		first.Note(ctx, "a", []string{"m-0"}, false), first.Clear(ctx, "a", []string{"m-0"}),
		first.Note(ctx, "a", []string{"m-1"}, false), first.Note(ctx, "a", []string{"m-2", "$m-3"}, false),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	var noted bson.M
	if err := s.db.Collection("apply_attempts").FindOne(ctx, bson.D{{Key: "_id", Value: "a"}}).Decode(&noted); err != nil || len(noted["inHand"].(bson.A)) != 1 {
		t.Errorf("attempts: got %v and %v, want the last one alone", noted, err)
	}
	beat(first, false, false)
	died(first, "a", "m-2", 0)

	second := s.Process("pod-2", "pod") // the first one is gone without a word
	beat(second, true, true)
	died(second, "a", "m-2", 1)
	died(second, "a", "m-1", 0)
	died(second, "b", "m-2", 0)
	if err := second.Note(ctx, "a", []string{"m-2"}, false); err != nil {
		t.Fatal(err)
	}
	died(second, "a", "m-2", 1)

	// Another instance takes a silent process for dead, and one that speaks again for alive.
	third := s.Process("other-1", "other")
	_, err := s.db.Collection("projector_processes").UpdateByID(ctx, "pod-2", bson.D{{Key: "$set", Value: bson.D{{Key: "heartbeatAt", Value: time.Now().Add(-time.Minute)}}}})
	if err != nil {
		t.Fatal(err)
	}
	beat(third, true, true)
	died(third, "a", "m-2", 2)
	beat(second, false, true)
	died(third, "a", "m-2", 1)
}

// What another process has done says nothing about what it had not in hand.
func TestProcess_ASuccessClearsOfOthersNotesOnlyWhatItCovers(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	ctx := t.Context()
	dead, next := s.Process("pod-1", "pod"), s.Process("pod-2", "pod")
	steps := []error{
		dead.Beat(ctx, true), dead.Note(ctx, "a", []string{"m-1", "m-2", "$m-3", "m-4"}, true), next.Beat(ctx, true),
		next.Note(ctx, "a", []string{"m-1", "m-2"}, false), next.Clear(ctx, "a", []string{"m-1"}),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	deaths := func() []string {
		got, err := next.Deaths(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, death := range got {
			left = append(left, death.Messages...)
			if !death.Alone {
				t.Errorf("got %+v, want it to be known that it was tried alone", death)
			}
		}
		slices.Sort(left)
		return left
	}
	if got := deaths(); !slices.Equal(got, []string{"$m-3", "m-2", "m-4"}) {
		t.Errorf("after the first was dealt with: got %v, want the three others", got)
	}
	if err := next.Clear(ctx, "a", []string{"m-2", "$m-3", "m-4"}); err != nil {
		t.Fatal(err)
	}
	if got := deaths(); len(got) != 0 {
		t.Errorf("after all were dealt with: got %v, want none", got)
	}
}

func TestProcess_AnOrderlyStopIsNoDeath(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	ctx := t.Context()
	stopped, same, other := s.Process("pod-1", "pod"), s.Process("pod-2", "pod"), s.Process("other-1", "other")
	if err := errors.Join(stopped.Beat(ctx, true), stopped.Note(ctx, "a", []string{"m-1"}, false), stopped.Stop(ctx)); err != nil {
		t.Fatal(err)
	}
	// Its successor has its name, and others have not heard from it for long.
	if err := same.Beat(ctx, true); err != nil || same.CrashedLately() {
		t.Errorf("the successor: got a recent crash %t and %v, want not", same.CrashedLately(), err)
	}
	_, err := s.db.Collection("projector_processes").UpdateByID(ctx, "pod-1", bson.D{{Key: "$set", Value: bson.D{{Key: "heartbeatAt", Value: time.Now().Add(-time.Minute)}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Beat(ctx, false); err != nil || other.CrashedLately() {
		t.Errorf("another: got a recent crash %t and %v, want not", other.CrashedLately(), err)
	}
	// Nor has one died that was taken for dead and then stopped.
	_, err = s.db.Collection("projector_processes").UpdateByID(ctx, "pod-1", bson.D{{Key: "$set", Value: bson.D{{Key: "diedAt", Value: time.Now()}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Deaths(ctx, "a"); err != nil || len(got) != 0 {
		t.Errorf("deaths: got %v and %v, want none", got, err)
	}
}

// What a process has noted of itself tells that the database was restored from before.
func TestProcess_FindsTheDatabaseGoneBack(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	found := 0
	p := readmodel.New(client, readmodel.Config{Database: database, WentBack: func() { found++ }}).Process("p-1", "p")
	processes := client.Database(database).Collection(projection.Processes)
	beat := func(when string, want int) {
		t.Helper()
		if err := p.Beat(t.Context(), false); err != nil || found != want {
			t.Errorf("%s: found %d times and %v, want %d", when, found, err, want)
		}
	}
	beat("first", 0)
	beat("second", 0)
	older := bson.D{{Key: "$set", Value: bson.D{{Key: "heartbeatAt", Value: time.Now().Add(-time.Hour)}}}}
	if _, err := processes.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "p-1"}}, older); err != nil {
		t.Fatal(err)
	}
	beat("restored", 1)
	beat("after it", 1)
	if err := processes.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	beat("emptied", 2)
}

// Others take a process for dead 45 seconds after it has last said that it lives. By then
// nothing of it is on its way any more.
func TestProcess_WhatItHasBegunEndsBeforeOthersTakeItForDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := (&readmodel.Store{}).Process("p", "p")
		p.Heard(time.Now())
		time.Sleep(29 * time.Second) //nolint:forbidigo // in a bubble
		if err := p.Silent(); err != nil {
			t.Errorf("after 29 s: got %v, want that it may begin", err)
		}
		ctx, end := p.WhileHeard(t.Context())
		defer end()
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		if err := p.Silent(); !errors.Is(err, readmodel.ErrSilent) || ctx.Err() != nil {
			t.Errorf("after 31 s: got %v and %v, want that it begins nothing more, and goes on with what it has begun", err, ctx.Err())
		}
		p.Heard(time.Now())
		time.Sleep(39 * time.Second) //nolint:forbidigo // in a bubble
		if ctx.Err() != nil {
			t.Errorf("39 s after it was heard again: got %v, want it at work", ctx.Err())
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, readmodel.ErrSilent) {
			t.Errorf("41 s after it was heard again: got %v, want it to have ended", err)
		}
	})
}

// A majority that is behind is waited for with each write, also with one that changes
// nothing. One after another, a few of them are longer than the time between two beats.
func TestProcess_ABeatWaitsForAMajorityOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var writes []string // guarded by mu
	noting := make(chan struct{})
	var once sync.Once
	client, database := servers.Mongo(t, &event.CommandMonitor{Started: func(ctx context.Context, e *event.CommandStartedEvent) {
		if e.CommandName != "findAndModify" && e.CommandName != "update" {
			return
		}
		mu.Lock()
		writes = append(writes, e.CommandName)
		mu.Unlock()
		if e.CommandName == "update" {
			once.Do(func() { close(noting) })
			return
		}
		select { // the other is on its way before this one is
		case <-noting:
		case <-ctx.Done():
		case <-t.Context().Done():
		}
	}})
	p := readmodel.New(client, readmodel.Config{Database: database, OnGap: "wait"}).Process("p-1", "p")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := p.Beat(ctx, true)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(writes)
	if want := []string{"findAndModify", "update"}; err != nil || !slices.Equal(writes, want) {
		t.Errorf("a beat: got the writes %v and %v, want %v together", writes, err, want)
	}
}

func TestProcess_ABeatThatNoMajorityHasSaysSo(t *testing.T) {
	t.Parallel()
	e := sandboxtest.StartWith(t, "")
	client, err := mongo.Connect(options.Client().ApplyURI(e.MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }()
	p := readmodel.New(client, readmodel.Config{Database: "read"}).Process("p-1", "p")
	if err := p.Beat(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	e.Become(t, `{"mongodb":{"lag":"1h"}}`)
	const want = "a majority of the replica set has only what was written until"
	for {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err = p.Beat(short, false)
		cancel()
		if err == nil || t.Context().Err() != nil {
			t.Fatalf("a beat that no majority has: got %v, want an error with %q", err, want)
		}
		if strings.Contains(err.Error(), want) { // the server tells its times to the second
			return
		}
	}
}
