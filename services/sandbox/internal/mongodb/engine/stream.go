package engine

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// StreamOptions say what a change stream covers and where it begins.
type StreamOptions struct {
	// TruncatedArrays and WallTime are fields that events have since 5.0 and 6.0.
	TruncatedArrays, WallTime bool
	// Expanded adds events of what concerns collections and indexes, and the
	// collection's id to each; DisambiguatedPaths a field to updates.
	Expanded, DisambiguatedPaths bool

	// NS is the collection to watch; all of a database without a Collection,
	// the whole cluster without a DB.
	NS oplog.Namespace
	// Resume begins after an event or high-water mark; nil for none.
	Resume *oplog.ResumeToken
	// StartAt begins with the first event at or after a time; 0 for none.
	// Without Resume and StartAt a stream begins with what is written next.
	StartAt oplog.Timestamp
	// UpdateLookup adds the present document to update events, PostImage that
	// right after the update.
	UpdateLookup bool
	PostImage    Image
	// PreImage adds the document before the change.
	PreImage Image
	// EarlyImage has it before the namespace and leaves out one that was not kept,
	// as versions before 6.0 do.
	EarlyImage bool
	// LateLoss opens a stream whose Resume event has been given up, and fails at
	// its first event, as 4.4 does.
	LateLoss bool
	// Split gives the reader the Resume event, too: whether its token is found
	// depends on how the event is split.
	Split bool
}

// Stream reads the oplog as a change stream. It is used by one goroutine at a
// time.
type Stream struct {
	engine  *Engine
	options StreamOptions
	// next is the number of the next oplog entry to be read into ahead.
	next  uint64
	ahead []oplog.Entry
	// from bounds the stream from below: earlier entries are passed over.
	from oplog.Timestamp
	// resume is the event that the stream has still to meet.
	resume *oplog.ResumeToken
	// invalidate is due after an event that ends the stream.
	invalidate *Event
	ended      bool
	// seen is the place of the last event or mark.
	seen oplog.ResumeToken
	// looked tells that events have present documents, which may not be durable.
	looked bool
}

// Event is one event of a stream.
type Event struct {
	Token oplog.ResumeToken
	// Doc is the event as clients see it.
	Doc bson.Raw
	// Invalidates tells that the stream ends with this event.
	Invalidates bool
	// Resumed tells that the stream resumes after the event, or after one of its
	// fragments: Given is the number of those that the reader has had, 0 for the whole.
	Resumed bool
	Given   uint32
}

// Watch opens a change stream.
func (e *Engine) Watch(o StreamOptions) (*Stream, error) {
	s := &Stream{engine: e, options: o}
	switch {
	case o.Resume != nil:
		s.from = o.Resume.Time
		s.seen = *o.Resume
		if o.Resume.Event {
			s.resume = o.Resume
		}
	case o.StartAt != 0:
		s.from = o.StartAt
		s.seen = oplog.HighWaterMark(o.StartAt)
	default:
		var last oplog.Timestamp
		s.next, last = e.oplog.Applied()
		s.from = last + 1
		s.seen = oplog.HighWaterMark(s.from)
		return s, nil
	}
	var lost bool
	if s.next, lost = e.oplog.Seek(s.from); lost && (s.resume == nil || !o.LateLoss) {
		return nil, oplog.ErrHistoryLost()
	}
	return s, nil
}

// readAhead is how many entries are taken from the oplog at once.
const readAhead = 256

// Next gives the next event, or nil when there is none at present.
func (s *Stream) Next() (*Event, error) {
	for !s.ended {
		if event := s.invalidate; event != nil {
			s.invalidate = nil
			if s.passed(event.Token) {
				continue // the stream was started after this very invalidation
			}
			s.ended = true
			s.seen = event.Token
			return event, nil
		}
		entry, err := s.read()
		if entry == nil || err != nil {
			return nil, err
		}
		if entry.Time < s.from || !s.covers(entry) {
			continue
		}
		token := oplog.TokenOf(entry)
		if s.ends(entry) {
			s.invalidate = s.invalidateEvent(entry, token.Invalidation())
		}
		waiting := s.resume
		if err := s.meet(token); err != nil {
			return nil, err
		}
		if waiting != nil {
			if s.resume != nil || !s.options.Split {
				continue
			}
			return &Event{Token: token, Doc: s.document(entry, token), Resumed: true, Given: waiting.Fragment}, nil
		}
		if err := s.options.missing(entry, token); err != nil {
			return nil, err
		}
		s.seen = token
		return &Event{Token: token, Doc: s.document(entry, token)}, nil
	}
	return nil, nil
}

// read gives the next entry, nil when there is none at present.
func (s *Stream) read() (*oplog.Entry, error) {
	if len(s.ahead) == 0 {
		var err error
		s.ahead, s.next, err = s.engine.oplog.Read(s.ahead[:0:cap(s.ahead)], s.next, readAhead)
		if err != nil {
			return nil, err
		}
		if len(s.ahead) == 0 {
			s.advance()
			return nil, nil
		}
	}
	entry := &s.ahead[0]
	s.ahead = s.ahead[1:]
	return entry, nil
}

// advance moves the place of the stream to the end of the oplog: everything
// up to there has been looked at.
func (s *Stream) advance() {
	if s.resume != nil {
		return
	}
	end, last := s.engine.oplog.End()
	if mark := oplog.HighWaterMark(last); end == s.next && mark.Time > s.seen.Time {
		s.seen = mark
	}
}

// meet compares an event with the one the stream is to resume after.
func (s *Stream) meet(token oplog.ResumeToken) error {
	want := s.resume
	switch {
	case want == nil:
		return nil
	case token.Time > want.Time:
		return ErrTokenNotFound()
	case token.Time < want.Time || token.Index < want.Index:
		return nil
	case token.Index > want.Index:
		return mongoerr.New(50792, "Invalid resumeToken: txnOpIndex was skipped")
	case token.Compare(want.Part(0)) == 0:
		s.resume = nil
		return nil
	case want.FromInvalidate && token.Invalidation().Compare(*want) == 0:
		return nil // its invalidation is next
	default:
		return ErrTokenNotFound()
	}
}

// passed reports that the invalidation is where the stream resumes.
func (s *Stream) passed(token oplog.ResumeToken) bool {
	if s.resume == nil || token.Compare(*s.resume) != 0 {
		return false
	}
	s.resume = nil
	return true
}

// ErrTokenNotFound is the error for a token whose event the stream does not have.
func ErrTokenNotFound() error {
	return mongoerr.New(mongoerr.ChangeStreamFatalError, "cannot resume stream; the resume token was not found.").
		WithLabels("NonResumableChangeStreamError")
}

// Place is where the stream stands: resuming from it misses nothing that Next
// has not given yet, and repeats nothing that it has.
func (s *Stream) Place() oplog.ResumeToken { return s.seen }

// Ended reports that the stream has given its invalidate event.
func (s *Stream) Ended() bool { return s.ended }

// Wait returns when Next may have more to give, or ctx ends.
func (s *Stream) Wait(ctx context.Context) error {
	if len(s.ahead) > 0 || s.invalidate != nil || s.ended {
		return nil
	}
	return s.engine.oplog.Wait(ctx, s.next)
}

// covers reports whether an entry makes an event of this stream.
func (s *Stream) covers(e *oplog.Entry) bool {
	switch e.Operation {
	case oplog.OpInsert, oplog.OpUpdate, oplog.OpReplace, oplog.OpDelete, oplog.OpRename, oplog.OpDropDatabase:
	case oplog.OpDrop:
		if e.UUID == uuid.Nil { // a view's
			return false
		}
	default:
		if !s.options.Expanded || e.Further == nil {
			return false
		}
	}
	watched := s.options.NS
	switch {
	case watched.DB == "":
		return !isInternal(e.NS.DB) && !e.NS.IsSystem()
	case watched.Collection == "":
		return e.NS.DB == watched.DB && !e.NS.IsSystem()
	default:
		return e.NS == watched || e.Operation == oplog.OpRename && e.To == watched
	}
}

// isInternal tells databases that cluster-wide streams leave out.
func isInternal(db string) bool { return db == "admin" || db == "config" || db == "local" }

// ends reports whether an entry invalidates this stream.
func (s *Stream) ends(e *oplog.Entry) bool {
	switch {
	case s.options.NS.DB == "":
		return false
	case s.options.NS.Collection == "":
		return e.Operation == oplog.OpDropDatabase
	default:
		return e.Operation == oplog.OpDrop || e.Operation == oplog.OpRename
	}
}

// Durable returns when all that the events so far show is durable: they are
// themselves, but not the present documents in them.
func (s *Stream) Durable() error {
	if !s.looked {
		return nil
	}
	s.looked = false
	return s.engine.Durable()
}

// lookup gives the version of an event's document that a majority has at present, nil
// if it is gone.
func (s *Stream) lookup(e *oplog.Entry) bson.Raw {
	s.looked = true
	id, _ := bsonkit.Get(e.Key, "_id")
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	table := s.engine.majorityTable(e.NS, e.UUID)
	if table == nil {
		return nil
	}
	ids := table.Indexes[0]
	record, ok := ids.Keys.Get(string(bsonkit.AppendKey(nil, ids.Spec.Collation.Fold(id))))
	if !ok {
		return nil
	}
	rec, _ := table.Records.Get(record)
	return rec.Doc
}
