package command

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/interrupt"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Source gives the documents of a cursor.
type Source interface {
	// next gives the next document, nil when there is none: at the end, or for
	// a source that awaits, at present.
	Next() (bson.Raw, error)
	// exhausted reports that nothing can come any more, without looking for it.
	Exhausted() bool
	Close()
}

// Cursor is a source that a client reads in batches. It is used by one command
// at a time.
type Cursor struct {
	ID     int64
	NS     string
	Source Source
	// Lsid and TxnNumber are those of the command that opened it.
	Lsid      string
	TxnNumber *int64
	// user is who opened it; nobody, where nobody has to say who they are.
	user access.Name
	// AppName is that of the client that opened it.
	appName string
	// Streams tells change streams.
	Streams bool
	// Work is what the source reads under.
	Work *interrupt.Context
	// Left is what is left of the time limit of the command that opened it, for those
	// that go on with it; Limited tells that there was one.
	Left    time.Duration
	Limited bool
	// kept is a document that did not fit into the last batch.
	kept bson.Raw
	// opened is when it was made known.
	opened time.Time

	// Guarded by cursors.mu.
	busy    bool
	lastUse time.Time
	// cancel ends the command that uses the cursor, when it is killed.
	cancel context.CancelCauseFunc
	killed bool
}

// cursors are those that clients may come back to.
type cursors struct {
	mu   sync.Mutex
	byID map[int64]*Cursor
	// sessions are when those that have cursors were used last, by the bytes of their
	// lsid.
	sessions map[string]time.Time
}

func newCursors() *cursors {
	return &cursors{byID: map[int64]*Cursor{}, sessions: map[string]time.Time{}}
}

// Refresh notes that a session is in use, which keeps its cursors.
func (s *cursors) Refresh(lsid bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.sessions[string(lsid)]; has {
		s.sessions[string(lsid)] = time.Now()
	}
}

// Add makes a cursor known and gives it an id.
func (s *cursors) Add(c *Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c.ID = 0; c.ID == 0 || s.byID[c.ID] != nil; {
		c.ID = rand.Int64()
	}
	c.lastUse = time.Now()
	c.opened = c.lastUse
	s.byID[c.ID] = c
	if c.Lsid != "" {
		s.sessions[c.Lsid] = c.lastUse
	}
}

// errCursorKilled is why a command ends whose cursor was killed.
var errCursorKilled = mongoerr.New(mongoerr.CursorKilled, "operation was interrupted because the cursor was killed")

// Take gives a cursor to one command. The context ends when the cursor is
// killed.
func (s *cursors) Take(ctx context.Context, id int64) (*Cursor, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil {
		return nil, nil, mongoerr.New(mongoerr.CursorNotFound, "cursor id %d not found", id)
	}
	if c.busy {
		return nil, nil, mongoerr.New(mongoerr.CursorInUse, "cursor id %d is already in use", id)
	}
	c.busy = true
	ctx, c.cancel = context.WithCancelCause(ctx)
	return c, ctx, nil
}

// Put gives a cursor back; or closes it, if it is at its end or was killed.
func (s *cursors) Put(c *Cursor, over bool) {
	s.mu.Lock()
	c.busy, c.lastUse = false, time.Now()
	c.cancel(nil)
	over = over || c.killed
	if over {
		delete(s.byID, c.ID)
	}
	s.mu.Unlock()
	if over {
		c.Source.Close()
	}
}

// Kill closes a cursor, at once or when the command that uses it has ended. It
// reports whether there was one.
func (s *cursors) Kill(id int64) bool {
	s.mu.Lock()
	c := s.byID[id]
	if c == nil || c.killed {
		s.mu.Unlock()
		return false
	}
	if c.busy {
		c.killed = true
		c.cancel(errCursorKilled)
		s.mu.Unlock()
		return true
	}
	delete(s.byID, id)
	s.mu.Unlock()
	c.Source.Close()
	return true
}

// KillWhere kills the cursors that match.
func (s *cursors) KillWhere(match func(*Cursor) bool) {
	s.mu.Lock()
	var ids []int64
	for id, c := range s.byID {
		if match(c) {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.Kill(id)
	}
}

// Fail lets the next command on each cursor that matches end with the error, and
// a command on it that is running end at once.
func (s *cursors) Fail(err *mongoerr.Error, match func(*Cursor) bool) {
	s.mu.Lock()
	var gone []Source
	for _, c := range s.byID {
		switch {
		case !match(c):
		case c.busy:
			c.killed = true
			c.cancel(err)
		default:
			gone = append(gone, c.Source)
			c.Source, c.kept = failed{err}, nil
		}
	}
	s.mu.Unlock()
	for _, source := range gone {
		source.Close()
	}
}

// failed is a source of which nothing is left but an error.
type failed struct{ err *mongoerr.Error }

func (f failed) Next() (bson.Raw, error) { return nil, f.err }

func (f failed) Exhausted() bool { return false }

func (f failed) Close() {}

// closeAll closes what is left when no command runs any more.
func (s *cursors) closeAll() { s.KillWhere(func(*Cursor) bool { return true }) }

// CursorTimeout is how long a cursor outside a session may stay unused
// (cursorTimeoutMillis).
const CursorTimeout = 10 * time.Minute

func (s *Server) reapCursors(ctx context.Context) error {
	for pause(ctx, time.Minute) {
		now := time.Now()
		s.Cursors.KillWhere(func(c *Cursor) bool { return s.Cursors.expired(c, now) })
		s.Cursors.forgetSessions()
	}
	return nil
}

// expired tells a cursor that nobody will come back to, as it was idle for too
// long; or its session was, which a command under way keeps. It needs mu.
func (s *cursors) expired(c *Cursor, now time.Time) bool {
	switch {
	case c.busy:
		return false
	case c.Lsid == "":
		return now.Sub(c.lastUse) > CursorTimeout
	}
	return now.Sub(c.lastUse) > SessionMinutes*time.Minute && now.Sub(s.sessions[c.Lsid]) > SessionMinutes*time.Minute
}

// forgetSessions forgets those without a cursor.
func (s *cursors) forgetSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]bool{}
	for _, c := range s.byID {
		open[c.Lsid] = true
	}
	maps.DeleteFunc(s.sessions, func(lsid string, _ time.Time) bool { return !open[lsid] })
}

// CursorStats counts open cursors.
type CursorStats struct {
	Open          int
	ChangeStreams int
}

func (s *cursors) Stats() CursorStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := CursorStats{Open: len(s.byID)}
	for _, c := range s.byID {
		if c.Streams {
			stats.ChangeStreams++
		}
	}
	return stats
}

// Belongs refuses a command that is not of the cursor's session or transaction.
func (c *Cursor) Belongs(g generic) error {
	switch {
	case c.Lsid == "" && g.lsid != nil:
		return mongoerr.New(50736, "Cannot run getMore on cursor %d, which was not created in a session, in a session", c.ID)
	case c.Lsid != "" && g.lsid == nil:
		return mongoerr.New(50737, "Cannot run getMore on cursor %d, which was created in a session, without an lsid", c.ID)
	case c.Lsid != string(g.lsid):
		return mongoerr.New(50738, "Cannot run getMore on cursor %d, which was created in another session", c.ID)
	case c.TxnNumber == nil && g.InTransaction():
		return mongoerr.New(50739, "Cannot run getMore on cursor %d, which was not created in a transaction, in a transaction", c.ID)
	case c.TxnNumber != nil && g.TxnNumber == nil:
		return mongoerr.New(50740, "Cannot run getMore on cursor %d, which was created in a transaction, without a txnNumber", c.ID)
	case c.TxnNumber != nil && *c.TxnNumber != *g.TxnNumber:
		return mongoerr.New(50741, "Cannot run getMore on cursor %d, which was created in another transaction", c.ID)
	}
	return nil
}

// Opened refuses a client cursors of other users.
func (c *Call) Opened(cur *Cursor) error {
	if c.Server.authorization && cur.user != c.Conn.Login.User {
		return mongoerr.New(mongoerr.Unauthorized, "cursor id %d was not created by the authenticated user", cur.ID)
	}
	return nil
}

// OfOthers reports whether one of the cursors was opened by another user.
func (s *cursors) OfOthers(user access.Name, ids []int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(ids, func(id int64) bool {
		c := s.byID[id]
		return c != nil && c.user != user
	})
}

// NewCursor makes a cursor of the command's session.
func (c *Call) NewCursor(ns oplog.Namespace, source Source) *Cursor {
	cur := &Cursor{NS: ns.String(), Source: source, Work: c.work, Lsid: string(c.Generic.lsid), user: c.Conn.Login.User, appName: c.Conn.AppName}
	if c.Generic.MaxTime > 0 {
		cur.Limited, cur.Left = true, c.Generic.MaxTime-time.Since(c.arrived)
	}
	if c.Generic.InTransaction() {
		cur.TxnNumber = c.Generic.TxnNumber
	}
	return cur
}
