package engine

import (
	"slices"
	"testing"
	"testing/synctest"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func checkOut(t testing.TB, e *Engine) *Session {
	t.Helper()
	s, err := e.CheckOut(t.Context(), doc(t, "id", "session"))
	must(t, err)
	return s
}

func TestSession_ARetriedStatementIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	s := checkOut(t, e)
	for round := range 3 {
		retry, err := s.Retryable(1)
		must(t, err)
		e.mustInsert(t, Write{Retry: retry}, doc(t, "_id", 1, "n", 0), doc(t, "_id", 2))
		result, err := e.Update(t.Context(), Write{Retry: retry, Statement: 5}, things,
			updateOf(t, filter(t, "_id", 1), doc(t, "$inc", doc(t, "n", 1))))
		must(t, err)
		if result.Matched != 1 || result.Modified != 1 {
			t.Errorf("round %d: got %d matched, %d modified, want 1 and 1", round, result.Matched, result.Modified)
		}
		removed, err := e.Delete(t.Context(), Write{Retry: retry, Statement: 6, Documents: true}, things,
			Selection{Filter: filter(t, "_id", 2)})
		must(t, err)
		if removed.Matched != 1 || removed.Before.String() != doc(t, "_id", 2).String() {
			t.Errorf("round %d: got %d deleted, before %s, want 1 and the document", round, removed.Matched, removed.Before)
		}
	}
	want := []string{doc(t, "_id", 1, "n", 1).String()}
	if got := e.contents(t, nil, things); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSession_ANewNumberForgetsTheOldStatements(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	s := checkOut(t, e)
	first, err := s.Retryable(1)
	must(t, err)
	e.mustInsert(t, Write{Retry: first}, doc(t, "_id", 1))
	second, err := s.Retryable(2)
	must(t, err)
	if _, err := e.Insert(t.Context(), Write{Retry: second}, things, docs(t, 1)); !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Errorf("got %v, want DuplicateKey", err)
	}
	if _, err := s.Retryable(1); !mongoerr.Is(err, mongoerr.TransactionTooOld) {
		t.Errorf("an old number: got %v, want TransactionTooOld", err)
	}
}

func TestSession_SessionStates(t *testing.T) {
	t.Parallel()
	retryable := func(s *Session) error { _, err := s.Retryable(5); return err }
	startAt := func(number int64) func(s *Session) error {
		return func(s *Session) error { _, err := s.StartTransaction(number); return err }
	}
	continueAt := func(number int64) func(s *Session) error {
		return func(s *Session) error { _, err := s.Transaction(number); return err }
	}
	commit := func(s *Session) error { return s.Commit(5) }
	abort := func(s *Session) error { return s.Abort(5) }
	for name, c := range map[string]struct {
		before []func(*Session) error
		act    func(*Session) error
		want   mongoerr.Code
	}{
		"a transaction goes on":                       {[]func(*Session) error{startAt(5)}, continueAt(5), 0},
		"a transaction that was not started":          {nil, continueAt(5), mongoerr.NoSuchTransaction},
		"a transaction of a later number":             {[]func(*Session) error{startAt(5)}, continueAt(6), mongoerr.NoSuchTransaction},
		"a transaction of an older number":            {[]func(*Session) error{startAt(5)}, continueAt(4), mongoerr.TransactionTooOld},
		"starting an older number":                    {[]func(*Session) error{startAt(5)}, startAt(4), mongoerr.TransactionTooOld},
		"starting the same number":                    {[]func(*Session) error{startAt(5)}, startAt(5), mongoerr.ConflictingOperationInProgress},
		"starting the number of a retryable write":    {[]func(*Session) error{retryable}, startAt(5), mongoerr.ConflictingOperationInProgress},
		"a retryable write of a transaction's number": {[]func(*Session) error{startAt(5)}, retryable, mongoerr.InvalidOptions},
		"a commit":                {[]func(*Session) error{startAt(5)}, commit, 0},
		"a commit again":          {[]func(*Session) error{startAt(5), commit}, commit, 0},
		"a commit after an abort": {[]func(*Session) error{startAt(5), abort}, commit, mongoerr.NoSuchTransaction},
		"an abort after a commit": {[]func(*Session) error{startAt(5), commit}, abort, mongoerr.TransactionCommitted},
		"an abort again":          {[]func(*Session) error{startAt(5), abort}, abort, mongoerr.NoSuchTransaction},
		"a commit of what a newer number has replaced": {[]func(*Session) error{startAt(5), startAt(6)}, commit, mongoerr.TransactionTooOld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := checkOut(t, New(Config{}))
			for _, step := range c.before {
				must(t, step(s))
			}
			if got := code(c.act(s)); got != c.want {
				t.Errorf("got code %v, want %v", got, c.want)
			}
			s.abandon()
		})
	}
}

func TestSession_ASessionIsUsedByOneCommandAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		first := checkOut(t, e)
		second := make(chan *Session)
		go func() { second <- checkOut(t, e) }()
		synctest.Wait()
		select {
		case <-second:
			t.Fatal("got the session twice, want the second command to wait")
		default:
		}
		first.CheckIn()
		(<-second).CheckIn()
	})
}

func TestSession_EndingASessionAbortsItsTransaction(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	e.mustInsert(t, Write{}, doc(t, "_id", 1, "n", 0))
	s := checkOut(t, e)
	txn, err := s.StartTransaction(1)
	must(t, err)
	updatesOne(t, e, Write{Txn: txn})
	s.CheckIn()
	must(t, e.EndSession(t.Context(), doc(t, "id", "session")))
	_, err = e.Update(t.Context(), Write{}, things, set(t, 1, "n", 7))
	must(t, err)
	if got := e.Sessions(); got != 0 {
		t.Errorf("got %d sessions, want 0", got)
	}
}
