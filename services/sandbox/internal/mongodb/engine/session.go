package engine

import (
	"context"
	"sync"
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Session is a logical session: the latest transaction or retryable write of
// one client. It is used by one command at a time, who has checked it out.
type Session struct {
	engine *Engine
	id     oplog.TxnID // Number is that of the transaction or retryable write
	// gate holds a token while the session is checked out.
	gate chan struct{}

	// Owned by who has checked the session out.
	state      sessionState
	statements map[int32]Result
	txn        *Txn

	lastUse time.Time // guarded by sessions.mu
	client  Client    // guarded by sessions.mu
}

// Client is who has used a session last.
type Client struct{ Application, Address string }

type sessionState uint8

const (
	sessionFresh sessionState = iota
	sessionRetryable
	sessionInTransaction
	sessionCommitted
	sessionAborted
)

// sessions are those in use, by the bytes of their id.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*Session
}

func newSessions() *sessions { return &sessions{byID: map[string]*Session{}} }

func newSession(e *Engine, id []byte) *Session {
	return &Session{
		engine: e, id: oplog.TxnID{Session: id, Number: -1}, gate: make(chan struct{}, 1), lastUse: e.config.Now(),
	}
}

// CheckOut gives a session to one command, waiting for the one that has it.
// The session is made if it is not known. Its id is {id: UUID, uid: Binary}.
func (e *Engine) CheckOut(ctx context.Context, id []byte) (*Session, error) {
	e.sessions.mu.Lock()
	s := e.sessions.byID[string(id)]
	if s == nil {
		s = newSession(e, id)
		e.sessions.byID[string(id)] = s
	}
	s.lastUse = e.config.Now()
	e.sessions.mu.Unlock()
	select {
	case s.gate <- struct{}{}:
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// UsedBy notes who uses the session.
func (s *Session) UsedBy(c Client) {
	s.engine.sessions.mu.Lock()
	defer s.engine.sessions.mu.Unlock()
	s.client = c
}

// CheckIn ends the use of a session that CheckOut gave.
func (s *Session) CheckIn() { <-s.gate }

// KillSession aborts the transaction of a session, as soon as no command uses
// it. What the session has done stays known.
func (e *Engine) KillSession(ctx context.Context, id []byte) error {
	e.sessions.mu.Lock()
	s := e.sessions.byID[string(id)]
	e.sessions.mu.Unlock()
	return s.stop(ctx)
}

// EndSession forgets a session and aborts its transaction, as soon as no
// command uses it.
func (e *Engine) EndSession(ctx context.Context, id []byte) error {
	e.sessions.mu.Lock()
	s := e.sessions.byID[string(id)]
	delete(e.sessions.byID, string(id))
	e.sessions.mu.Unlock()
	if err := s.stop(ctx); err != nil {
		return err
	}
	e.forget(string(id))
	return nil
}

// stop aborts the transaction of a session, nil for none, as soon as no command
// uses it.
func (s *Session) stop(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer s.CheckIn()
	s.abandon()
	return nil
}

// KnownSession is a session that somebody has used.
type KnownSession struct {
	ID      []byte
	LastUse time.Time
}

// KnownSessions lists the sessions that have written with a number.
func (e *Engine) KnownSessions() []KnownSession {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	var all []KnownSession
	for id, s := range e.sessions.byID {
		all = append(all, KnownSession{ID: []byte(id), LastUse: s.lastUse})
	}
	return all
}

// Sessions is how many sessions are known.
func (e *Engine) Sessions() int {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	return len(e.sessions.byID)
}

// forgetSessions drops sessions that nobody has used for long.
func (e *Engine) forgetSessions(now time.Time) {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	for id, s := range e.sessions.byID {
		if now.Sub(s.lastUse) < e.config.SessionTimeout {
			continue
		}
		select {
		case s.gate <- struct{}{}:
			s.abandon()
			delete(e.sessions.byID, id)
			e.forget(id)
			s.CheckIn()
		default: // in use after all
		}
	}
}

// abandon aborts an open transaction.
func (s *Session) abandon() {
	if s.txn != nil {
		s.txn.Abort()
		s.txn = nil
	}
	if s.state == sessionInTransaction {
		s.state = sessionAborted
	}
}

// tooOld refuses a number below the session's.
func (s *Session) tooOld(number int64) error {
	if number >= s.id.Number {
		return nil
	}
	return mongoerr.New(mongoerr.TransactionTooOld,
		"Cannot start transaction %d on session because a newer transaction %d has already started.", number, s.id.Number)
}

// moveTo leaves what the session did before for a new number.
func (s *Session) moveTo(number int64, state sessionState) {
	s.abandon()
	s.id.Number, s.state, s.statements = number, state, nil
}

// StartTransaction opens a transaction under a number that is new to the
// session.
func (s *Session) StartTransaction(number int64) (*Txn, error) {
	if err := s.tooOld(number); err != nil {
		return nil, err
	}
	if number == s.id.Number {
		return nil, mongoerr.New(mongoerr.ConflictingOperationInProgress,
			"Cannot start a transaction at given transaction number %d a transaction with the same number is in state %s",
			number, s.state)
	}
	s.moveTo(number, sessionInTransaction)
	s.txn = s.engine.Open(s.id)
	return s.txn, nil
}

// Transaction gives the open transaction of a number.
func (s *Session) Transaction(number int64) (*Txn, error) {
	if err := s.tooOld(number); err != nil {
		return nil, err
	}
	switch {
	case number > s.id.Number, s.state == sessionRetryable:
		return nil, errNoTransaction(number)
	case s.state == sessionCommitted:
		return nil, mongoerr.New(mongoerr.TransactionCommitted, "Transaction %d has been committed.", number)
	case s.state == sessionInTransaction && s.txn.isOver():
		s.state = sessionAborted
	}
	if s.state != sessionInTransaction {
		return nil, mongoerr.New(mongoerr.NoSuchTransaction, "Transaction %d has been aborted.", number).
			WithLabels("TransientTransactionError")
	}
	return s.txn, nil
}

// Commit commits the transaction of a number; a second time it does nothing.
func (s *Session) Commit(number int64) error {
	if number == s.id.Number && s.state == sessionCommitted {
		return nil
	}
	txn, err := s.Transaction(number)
	if err != nil {
		return err
	}
	if err := txn.Commit(); err != nil {
		s.abandon()
		return err
	}
	s.txn, s.state = nil, sessionCommitted
	return nil
}

// Abort aborts the transaction of a number.
func (s *Session) Abort(number int64) error {
	if _, err := s.Transaction(number); err != nil {
		return err
	}
	s.abandon()
	return nil
}

// Retry remembers the statements of one retryable write. A nil Retry
// remembers nothing.
type Retry struct {
	session *Session
	// Repeated are the statements that had been done before.
	Repeated []int32
}

// Retryable begins or repeats the retryable write of a number.
func (s *Session) Retryable(number int64) (*Retry, error) {
	if err := s.tooOld(number); err != nil {
		return nil, err
	}
	if number > s.id.Number {
		s.moveTo(number, sessionRetryable)
	}
	if s.state != sessionRetryable {
		return nil, mongoerr.New(mongoerr.InvalidOptions,
			"Must specify autocommit=false on all operations of a multi-statement transaction.")
	}
	return &Retry{session: s}, nil
}

// result is what a statement did when it came before.
func (r *Retry) result(statement int32) (Result, bool) {
	if r == nil {
		return Result{}, false
	}
	result, ok := r.session.statements[statement]
	if ok {
		r.Repeated = append(r.Repeated, statement)
	}
	return result, ok
}

// Done tells a statement that came before.
func (r *Retry) Done(statement int32) bool {
	if r == nil {
		return false
	}
	_, done := r.session.statements[statement]
	return done
}

// NotRetryable is the number of a statement that nobody repeats.
const NotRetryable int32 = -1

// record remembers a statement that has written something. It needs
// Engine.mu.
func (r *Retry) record(statement int32, result Result) {
	if r == nil || result.Operation == oplog.OpNoop || statement == NotRetryable {
		return
	}
	if r.session.statements == nil {
		r.session.statements = map[int32]Result{}
	}
	r.session.statements[statement] = result
	e := r.session.engine
	e.outcomes = append(e.outcomes, outcome{
		session: r.session.id.Session, number: r.session.id.Number, statement: statement, result: result,
	})
}

func (s sessionState) String() string {
	switch s {
	case sessionRetryable:
		return "RetryableWrite"
	case sessionInTransaction:
		return "InProgress"
	case sessionCommitted:
		return "Committed"
	case sessionAborted:
		return "Aborted"
	default:
		return "None"
	}
}
