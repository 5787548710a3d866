package readmodel

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// sends is a server that answers when it is told to.
type sends struct {
	mu      sync.Mutex
	began   [][]string        // guarded by mu: the documents of each command, in order
	answers chan struct{}     // one for each command
	fails   map[string]error  // what commands with a document in them are answered
	commit  *groupCommit      // that sends here
	ended   map[string]error  // guarded by mu: what became of each write
	cancels map[string]func() // guarded by mu: end the writes' time
	running sync.WaitGroup    // of writes
}

func newSends() *sends {
	s := &sends{answers: make(chan struct{}), fails: map[string]error{}, ended: map[string]error{}, cancels: map[string]func(){}}
	s.commit = &groupCommit{send: s.send}
	return s
}

func (s *sends) send(ctx context.Context, models []mongo.WriteModel) error {
	var documents []string
	for _, m := range models {
		documents = append(documents, m.(*mongo.UpdateOneModel).Filter.(string))
	}
	s.mu.Lock()
	s.began = append(s.began, documents)
	s.mu.Unlock()
	select {
	case <-s.answers:
		failing := slices.IndexFunc(documents, func(document string) bool { return s.fails[document] != nil })
		if failing < 0 {
			return nil
		}
		return s.fails[documents[failing]]
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write begins to write documents, one after another, and returns when all wait.
func (s *sends) write(t *testing.T, documents ...string) {
	t.Helper()
	for _, document := range documents {
		ctx, cancel := context.WithCancel(t.Context())
		s.mu.Lock()
		s.cancels[document] = cancel
		s.mu.Unlock()
		s.running.Go(func() {
			defer cancel()
			err := s.commit.write(ctx, mongo.NewUpdateOneModel().SetFilter(document))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended[document] = err
		})
		synctest.Wait()
	}
}

// commands are the commands that have begun since the last call.
func (s *sends) commands() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, documents := range s.began {
		all = append(all, strings.Join(documents, "+"))
	}
	s.began = nil
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *sends) want(t *testing.T, commands string) {
	t.Helper()
	synctest.Wait()
	if got := s.commands(); got != commands {
		t.Errorf("commands: got %q, want %q", got, commands)
	}
}

// answer answers n commands.
func (s *sends) answer(n int) {
	for range n {
		s.answers <- struct{}{}
		synctest.Wait()
	}
}

// answerAll answers until every write has ended.
func (s *sends) answerAll() {
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	for {
		select {
		case s.answers <- struct{}{}:
		case <-ended:
			return
		}
	}
}

func TestGroupCommit_WhatComesMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSends()
		s.write(t, "a", "b", "c", "d", "e")
		s.want(t, "a b") // nobody waits for company
		s.answer(1)
		s.want(t, "c+d+e")
		s.write(t, "f")
		s.answer(1)
		s.want(t, "f")
		s.answer(2)
		s.running.Wait()
		for document, err := range s.ended {
			if err != nil {
				t.Errorf("write of %s: %v", document, err)
			}
		}
		if len(s.ended) != 6 || s.commit.underWay != 0 {
			t.Errorf("%d writes have ended and %d commands are under way, want 6 and none", len(s.ended), s.commit.underWay)
		}
	})
}

func TestGroupCommit_EachWriteHasItsOwnOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSends()
		s.fails["c"] = mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{
			{WriteError: mongo.WriteError{Index: 1, Code: 11000}}, {WriteError: mongo.WriteError{Index: 3, Code: 2}},
		}}
		s.write(t, "a", "b", "c", "d", "e", "f")
		s.want(t, "a b")
		s.answer(1)
		s.want(t, "c+d+e+f")
		s.answer(2)
		s.running.Wait()
		for document, code := range map[string]int{"a": 0, "b": 0, "c": 0, "d": 11000, "e": 0, "f": 2} {
			got := 0
			if bulk, ok := errors.AsType[mongo.BulkWriteException](s.ended[document]); ok && len(bulk.WriteErrors) == 1 && bulk.WriteErrors[0].Index == 0 {
				got = bulk.WriteErrors[0].Code
			}
			if got != code || (s.ended[document] != nil) != (code > 0) {
				t.Errorf("write of %s: got %v, want code %d for it alone", document, s.ended[document], code)
			}
		}
	})
}

// One that cannot be sent fails for itself, and nothing is shared with it for a while.
func TestGroupCommit_WhatFailsAsAWholeIsSentApart(t *testing.T) {
	t.Parallel()
	failures := map[string]error{
		"the command":      mongo.CommandError{Code: 10334, Message: "too large"},
		"its majority":     mongo.BulkWriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}},
		"another of n":     mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Index: 7}}}},
		"another below 0":  mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Index: -1}}}},
		"before it begins": errors.New("cannot encode"),
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSends()
				s.fails["bad"] = failure
				s.write(t, "a", "b", "c", "bad", "d")
				s.want(t, "a b")
				s.answer(1)
				s.want(t, "c+bad+d")
				s.answer(2) // those before are both done
				s.want(t, "bad c d")
				s.write(t, "e", "f", "g")
				s.want(t, "e f g")
				s.answer(6)
				s.running.Wait()
				for document, err := range s.ended {
					if (err != nil) != (document == "bad") {
						t.Errorf("write of %s: got %v", document, err)
					}
				}
				time.Sleep(apartTime) //nolint:forbidigo // in a synctest bubble
				s.write(t, "h", "i", "j", "k")
				s.answer(2)
				s.want(t, "h i j+k")
				s.answer(1)
			})
		})
	}
}

// A session's lock ends while its write waits for its turn, or as that comes.
// The end of the one that sends is nothing that the command has failed by.
func TestGroupCommit_ItsSendersEndKeepsNobodyApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSends()
		s.write(t, "a", "b", "c", "d", "e")
		s.answer(1)
		s.want(t, "a b c+d+e")
		s.cancels["c"]()
		s.want(t, "d e")
		s.write(t, "f", "g", "h")
		s.want(t, "f")
		s.answerAll()
	})
}

func TestGroupCommit_AWriteWhoseTimeIsOverIsNotSent(t *testing.T) {
	t.Parallel()
	for late, others := range map[string]string{"c": "d+e", "d": "c+e"} { // c would send the others
		t.Run(late, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSends()
				s.write(t, "a", "b", "c", "d", "e")
				s.commands()
				s.cancels[late]()
				synctest.Wait()
				if err := s.ended[late]; !errors.Is(err, context.Canceled) {
					t.Errorf("write of %s: got %v, want its end", late, err)
				}
				s.answer(1)
				s.want(t, others)
			})
		})
	}
}

func TestGroupCommit_AnotherSendsWhereTheTimeOfTheFirstIsOver(t *testing.T) {
	t.Parallel()
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := newSends()
			s.write(t, "a", "b", "c", "d", "e")
			s.cancels["c"]()
			s.answerAll()
			if s.ended["d"] != nil || s.ended["e"] != nil {
				t.Errorf("got %v, want the others written", s.ended)
			}
		})
	}
}

// A process that was stopped goes on before the timers do that would have ended the wait.
func TestGroupCommit_AWriteWhoseTimeIsOverIsLeftOutAtLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSends()
		over, end := context.WithCancel(t.Context())
		end()
		one := func(ctx context.Context, document string) *member {
			return &member{ctx: ctx, model: mongo.NewUpdateOneModel().SetFilter(document), sent: make(chan error, 1)}
		}
		group := []*member{one(t.Context(), "first"), one(over, "late"), one(t.Context(), "due")}
		s.commit.underWay++
		s.running.Go(func() { _ = s.commit.lead(group[0], group) })
		s.want(t, "first+due")
		s.answerAll()
	})
}
