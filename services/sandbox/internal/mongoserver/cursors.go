package mongoserver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// source gives the documents of a cursor.
type source interface {
	// next gives the next document, nil when there is none: at the end, or for
	// a source that awaits, at present.
	next() (bson.Raw, error)
	// exhausted reports that nothing can come any more, without looking for it.
	exhausted() bool
	close()
}

// cursor is a source that a client reads in batches. It is used by one command
// at a time.
type cursor struct {
	id     int64
	ns     string
	source source
	// lsid and txnNumber are those of the command that opened it.
	lsid      string
	txnNumber *int64
	// user is who opened it; nobody, where nobody has to say who they are.
	user access.Name
	// appName is that of the client that opened it.
	appName string
	// stream is set for change streams.
	stream *streamSource
	// tail is set for tailable cursors.
	tail *tailSource
	// kept is a document that did not fit into the last batch.
	kept bson.Raw

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
	byID map[int64]*cursor
}

func newCursors() *cursors { return &cursors{byID: map[int64]*cursor{}} }

// add makes a cursor known and gives it an id.
func (s *cursors) add(c *cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c.id = 0; c.id == 0 || s.byID[c.id] != nil; {
		c.id = rand.Int64()
	}
	c.lastUse = time.Now()
	s.byID[c.id] = c
}

// errCursorKilled is why a command ends whose cursor was killed.
var errCursorKilled = mongoerr.New(mongoerr.CursorKilled, "operation was interrupted because the cursor was killed")

// take gives a cursor to one command. The context ends when the cursor is
// killed.
func (s *cursors) take(ctx context.Context, id int64) (*cursor, context.Context, error) {
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

// put gives a cursor back; or closes it, if it is at its end or was killed.
func (s *cursors) put(c *cursor, over bool) {
	s.mu.Lock()
	c.busy, c.lastUse = false, time.Now()
	c.cancel(nil)
	over = over || c.killed
	if over {
		delete(s.byID, c.id)
	}
	s.mu.Unlock()
	if over {
		c.source.close()
	}
}

// kill closes a cursor, at once or when the command that uses it has ended. It
// reports whether there was one.
func (s *cursors) kill(id int64) bool {
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
	c.source.close()
	return true
}

// killWhere kills the cursors that match.
func (s *cursors) killWhere(match func(*cursor) bool) {
	s.mu.Lock()
	var ids []int64
	for id, c := range s.byID {
		if match(c) {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.kill(id)
	}
}

// closeAll closes what is left when no command runs any more.
func (s *cursors) closeAll() { s.killWhere(func(*cursor) bool { return true }) }

// cursorTimeout is how long a cursor outside a session may stay unused
// (cursorTimeoutMillis).
const cursorTimeout = 10 * time.Minute

func (s *Server) reapCursors(ctx context.Context) error {
	for pause(ctx, time.Minute) {
		now := time.Now()
		s.cursors.killWhere(func(c *cursor) bool {
			return !c.busy && c.lsid == "" && now.Sub(c.lastUse) > cursorTimeout
		})
	}
	return nil
}

// CursorStats counts open cursors.
type CursorStats struct {
	Open          int
	ChangeStreams int
}

func (s *cursors) stats() CursorStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := CursorStats{Open: len(s.byID)}
	for _, c := range s.byID {
		if c.stream != nil {
			stats.ChangeStreams++
		}
	}
	return stats
}

// belongs refuses a command that is not of the cursor's session or transaction.
func (c *cursor) belongs(g generic) error {
	switch {
	case c.lsid == "" && g.lsid != nil:
		return mongoerr.New(50736, "Cannot run getMore on cursor %d, which was not created in a session, in a session", c.id)
	case c.lsid != "" && g.lsid == nil:
		return mongoerr.New(50737, "Cannot run getMore on cursor %d, which was created in a session, without an lsid", c.id)
	case c.lsid != string(g.lsid):
		return mongoerr.New(50738, "Cannot run getMore on cursor %d, which was created in another session", c.id)
	case c.txnNumber == nil && g.inTransaction():
		return mongoerr.New(50739, "Cannot run getMore on cursor %d, which was not created in a transaction, in a transaction", c.id)
	case c.txnNumber != nil && g.txnNumber == nil:
		return mongoerr.New(50740, "Cannot run getMore on cursor %d, which was created in a transaction, without a txnNumber", c.id)
	case c.txnNumber != nil && *c.txnNumber != *g.txnNumber:
		return mongoerr.New(50741, "Cannot run getMore on cursor %d, which was created in another transaction", c.id)
	}
	return nil
}

// opened refuses a client cursors of other users.
func (c *call) opened(cur *cursor) error {
	if c.server.authorization && cur.user != c.conn.login.user {
		return mongoerr.New(mongoerr.Unauthorized, "cursor id %d was not created by the authenticated user", cur.id)
	}
	return nil
}

// ofOthers reports whether one of the cursors was opened by another user.
func (s *cursors) ofOthers(user access.Name, ids []int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(ids, func(id int64) bool {
		c := s.byID[id]
		return c != nil && c.user != user
	})
}

// newCursor makes a cursor of the command's session.
func (c *call) newCursor(ns engine.Namespace, source source) *cursor {
	cur := &cursor{ns: ns.String(), source: source, lsid: string(c.generic.lsid), user: c.conn.login.user, appName: c.conn.appName}
	if c.generic.inTransaction() {
		cur.txnNumber = c.generic.txnNumber
	}
	return cur
}
