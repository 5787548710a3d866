package engine

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// holdingJournal tells how many bytes it has had to keep that nobody had it commit.
type holdingJournal struct {
	fakeJournal
	held, most int
	heldMu     sync.Mutex
}

func (j *holdingJournal) Append(record []byte) int64 {
	j.heldMu.Lock()
	j.held += len(record)
	j.most = max(j.most, j.held)
	j.heldMu.Unlock()
	return j.fakeJournal.Append(record)
}

func (j *holdingJournal) Commit(position int64) error {
	j.heldMu.Lock()
	j.held = 0
	j.heldMu.Unlock()
	return j.fakeJournal.Commit(position)
}

// A caller that waits for durability itself has the journal keep little until then, whether
// it writes by one statement or by many.
func TestDeferred_TheJournalKeepsLittleOfWhatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	const size, documents = 1 << 20, 60
	multi := updateOf(t, filter(t), doc(t, "$set", doc(t, "changed", true)))
	multi.Multi = true
	for name, write := range map[string]func(e *Engine) error{
		"one statement": func(e *Engine) error {
			_, err := e.Update(t.Context(), Write{Deferred: true}, things, multi)
			return err
		},
		"many statements": func(e *Engine) error {
			for id := range documents {
				if _, err := e.Update(t.Context(), Write{Deferred: true}, things, updateOf(t, filter(t, "_id", id), doc(t, "$set", doc(t, "changed", true)))); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &holdingJournal{}
			e, err := Recover(Config{}, func(func([]byte) error) (Journal, error) { return j, nil })
			must(t, err)
			must(t, e.CreateCollection(t.Context(), nil, things, CollectionOptions{}))
			text := strings.Repeat("-", size)
			for id := range documents {
				e.mustInsert(t, Write{}, doc(t, "_id", id, "text", text))
			}
			must(t, write(e))
			if most := batchBytes + 8*size; j.most > most {
				t.Errorf("the journal had to keep %d bytes, want at most %d", j.most, most)
			}
			if j.held == 0 {
				t.Error("everything was waited for, want the end left to the caller")
			}
			view, err := e.View(nil, things)
			must(t, err)
			left, err := view.Documents(filter(t, "changed", nil), nil, storage.Hint{})
			must(t, err)
			if doc, err := left.Next(); err != nil || doc != nil {
				t.Errorf("got a document of %d bytes and error %v, want all changed", len(doc), err)
			}
		})
	}
}

// What a command has written before it waits for a transaction is shown meanwhile.
func TestDeferred_WhatWasWrittenIsShownWhileACommandWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.mustInsert(t, Write{}, doc(t, "_id", 0))
		s := watch(t, e, StreamOptions{NS: things})
		txn := begin(t, e, 1)
		_, err := e.Update(t.Context(), Write{Txn: txn}, things, updateOf(t, filter(t, "_id", 0), doc(t, "$set", doc(t, "n", 1))))
		must(t, err)
		_, err = e.Insert(t.Context(), Write{Deferred: true}, things, docs(t, 1))
		must(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := e.Update(t.Context(), Write{Deferred: true}, things, updateOf(t, filter(t, "_id", 0), doc(t, "$set", doc(t, "n", 2))))
			done <- err
		}()
		synctest.Wait()
		expect(t, s, "insert 1")
		txn.Abort()
		must(t, <-done)
	})
}
