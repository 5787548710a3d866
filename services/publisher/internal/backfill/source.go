package backfill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/slowlink"
)

// ErrDone is what Read returns behind the last document. That all of them are
// copied is for Complete to say.
var ErrDone = errors.New("every document of the copy was read")

// errNoEnd is why a chunk without a document is not taken for the end of the order.
var errNoEnd = errors.New("no document of a chunk is left, and the source may have more behind it")

const (
	// firstChunk is how many documents are read in the first snapshot, when nothing
	// is known of their size, and mostChunk in any.
	firstChunk, mostChunk = 1000, 20_000
	// chunkBytes is what a chunk is to hold, and is the most of it that is kept in
	// memory, but for its last document.
	chunkBytes = 4 << 20
	// defaultListed is how many keys are listed in one snapshot where no index
	// serves the copy, and listedBytes what they may take.
	defaultListed, listedBytes = 100_000, 16 << 20
	// defaultSearched is how many documents are looked through in one snapshot for
	// those without a place in the order.
	defaultSearched = 50_000
	// chunkTimeout bounds reading one chunk; a server ends a transaction after a minute.
	chunkTimeout = 45 * time.Second
)

// Source is a copy under way. It implements relay.Source. Read is for one
// goroutine, State may be called from any.
type Source struct {
	collection *mongo.Collection
	plan       Plan
	start      checkpoint.ClusterTime
	log        zerolog.Logger

	asked  bool                   // whether it is known which index serves the copy
	after  []byte                 // the key of the last document read; nil before the first
	unread bool                   // the document of that key is not read: none before it matched
	open   int                    // see Open
	listed bool                   // nothing is behind the list
	list   []listing              // keys of the next documents, where no index serves the copy
	rest   rest                   // where the documents are read that have no place in the order
	size   int                    // of a document in the last chunk, in bytes; 0 before the first
	halved int                    // see fewer
	count  int64                  // documents read
	chunk  []relay.Change         // read and not handed out
	ended  bool                   // no document is behind the chunk
	asOf   checkpoint.ClusterTime // see AsOf
	pace   pace
	retry  backoff.Backoff

	mu    sync.Mutex
	state State  // guarded by mu
	index *Index // written under mu by the reader; nil where none serves the copy
}

// New returns the copy that place holds, from where it stopped.
func New(collection *mongo.Collection, plan Plan, place checkpoint.Place, log zerolog.Logger) *Source {
	if plan.Listed == 0 {
		plan.Listed = defaultListed
	}
	if plan.ListedBytes == 0 {
		plan.ListedBytes = listedBytes
	}
	if plan.Searched == 0 {
		plan.Searched = defaultSearched
	}
	if plan.Bytes == 0 {
		plan.Bytes = chunkBytes
	}
	s := &Source{
		collection: collection,
		plan:       plan,
		start:      place.Start,
		log:        log.With().Str("collection", collection.Database().Name()+"."+collection.Name()).Logger(),
		after:      place.Copy.After,
		count:      place.Copy.Copied,
		pace:       pace{rate: plan.Rate},
		retry:      backoff.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second},
	}
	s.rest = restBehind(place.Copy.After)
	return s
}

// From has chunks from now on be read at that time or later, and their documents
// have their positions there. So what was listed before is listed anew. It is for
// the goroutine that reads.
func (s *Source) From(start checkpoint.ClusterTime) { s.start, s.list = start, nil }

// AsOf is a time behind all that the last chunk shows. It is for the goroutine that
// reads.
func (s *Source) AsOf() checkpoint.ClusterTime { return s.asOf }

// Read implements relay.Source. It returns ErrDone behind the last document, and a
// *SpelledError before one that must not be sent in the order. Other errors are tried again
// unless Plan.Once says otherwise.
func (s *Source) Read(ctx context.Context) (relay.Batch, error) {
	for len(s.chunk) == 0 {
		if s.ended {
			return relay.Batch{}, ErrDone
		}
		s.ask()
		err := s.readChunk(ctx)
		s.answered(err)
		if err == nil {
			s.retry.Reset()
			continue
		}
		if ctx.Err() != nil {
			return relay.Batch{}, context.Cause(ctx)
		}
		if _, spelled := errors.AsType[*SpelledError](err); spelled || s.plan.Once {
			return relay.Batch{}, err
		}
		s.log.Warn().Err(err).Msg("chunk not copied, trying again")
		if err := s.retry.Wait(ctx); err != nil {
			return relay.Batch{}, err
		}
	}
	n, err := s.pace.take(ctx, len(s.chunk))
	if err != nil {
		return relay.Batch{}, err
	}
	batch := relay.Batch{Changes: s.chunk[:n:n]}
	s.chunk = s.chunk[n:]
	return batch, nil
}

// Complete returns nil when the progress that is kept is that of every document
// read: only then is a copy whose Read returned ErrDone complete. It may be
// called when nobody reads any more.
func (s *Source) Complete(kept *Progress) error {
	if copied := kept.Copy().Copied; copied != s.count {
		return fmt.Errorf("of %d documents that the copy read %d are finished: it goes on behind those", s.count, copied)
	}
	return nil
}

// readChunk reads the next documents in one snapshot. It uses them only when
// the commit has shown that a majority has them.
func (s *Source) readChunk(ctx context.Context) error {
	whole := ctx
	ctx = slowlink.By(ctx, chunkTimeout)
	if err := s.choose(ctx); err != nil {
		return err
	}
	session, err := s.collection.Database().Client().StartSession()
	if err != nil {
		return fmt.Errorf("start a session: %w", err)
	}
	defer end(ctx, session)
	// The snapshot must not be older than the time at which the stream will begin.
	if err := session.AdvanceOperationTime(&bson.Timestamp{T: s.start.Seconds, I: max(s.start.Increment, 1) - 1}); err != nil {
		return fmt.Errorf("advance the session: %w", err)
	}
	found, err := s.findInSnapshot(mongo.NewSessionContext(ctx, session), session)
	s.timed(ctx, err)
	if err != nil {
		s.asked = false // the index may be gone
		return fmt.Errorf("read a chunk behind document %d: %w", s.count, err)
	}
	shown := session.OperationTime()
	if shown == nil {
		return errors.New("read a chunk: the answer has no operationTime")
	}
	s.asOf = checkpoint.ClusterTime{Seconds: shown.T, Increment: shown.I + 1}
	// In the same session, so it shows what the snapshot did.
	if err := s.checkSpellings(mongo.NewSessionContext(whole, session), found); err != nil {
		s.list, s.asked = nil, false // the index may be gone
		return err
	}
	return s.take(found)
}

// chunk is what was read in one snapshot.
type chunk struct {
	documents []bson.Raw
	// keys are those of the documents where they were listed, and list the listed
	// ones that come then. Documents that were listed may be gone.
	keys []bson.Raw
	list []listing
	// fresh are the keys that were listed, where nothing else was read.
	fresh []listing
	// listed says that a chunk without a document is not the end.
	listed bool
	// searched is the _id up to which the rest was looked through when it had no
	// document; zero is all of it.
	searched bson.RawValue
	// reached is the key of the next document to look at when none before it
	// matched; nil is none.
	reached bson.Raw
	// short says that nothing with a place is behind these documents.
	short bool
}

// findPlaced returns the next documents in the order, fewer than a chunk only at
// the end or where they are large.
func (s *Source) findPlaced(ctx context.Context) (chunk, error) {
	switch {
	case s.index != nil:
		return s.findAlong(ctx)
	case len(s.plan.Order) > 1:
		return s.findListed(ctx)
	}
	filter, err := s.placedFilter()
	if err != nil {
		return chunk{}, err
	}
	documents, full, err := s.find(ctx, filter, options.Find().SetSort(ascending(s.plan.Order)), s.most(), bson.RawValue{})
	return chunk{documents: documents, short: !full}, err
}

// most is how many documents a chunk may have.
func (s *Source) most() int {
	switch {
	case s.plan.Chunk > 0:
		return s.fewer(s.plan.Chunk)
	case s.size == 0:
		return s.fewer(firstChunk)
	default:
		return s.fewer(min(max(s.plan.Bytes/s.size, 1), mostChunk))
	}
}

// find returns the first documents, at most so many, and fewer where they are
// large; full where there may be more. A first document whose _id is known is left
// out and counts for nothing: by its size alone it may be all that a chunk holds.
func (s *Source) find(
	ctx context.Context, filter bson.D, how *options.FindOptionsBuilder, most int, known bson.RawValue,
) (documents []bson.Raw, full bool, err error) {
	if !known.IsZero() {
		most++
	}
	cursor, err := s.collection.Find(ctx, filter, how.SetLimit(int64(most)).SetBatchSize(int32(most)))
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = cursor.Close(ctx) }()
	documents = make([]bson.Raw, 0, most)
	read, size, passed := 0, 0, 0
	for ; size < s.plan.Bytes && cursor.Next(ctx); read++ {
		if read == 0 && cursor.Current.Lookup("_id").Equal(known) {
			passed = len(cursor.Current)
			continue
		}
		document := bson.Raw(append([]byte(nil), cursor.Current...))
		documents = append(documents, document)
		size += len(document)
		if len(documents) > 1 || cursor.RemainingBatchLength() > 0 {
			continue
		}
		if err := alone(ctx, document, passed); err != nil {
			return nil, false, err
		}
	}
	return documents, read == most || size >= s.plan.Bytes, cursor.Err()
}

// take makes changes of the documents of a chunk. Behind the last one with a place
// in the order come those without.
func (s *Source) take(found chunk) error {
	s.list = found.list
	if len(found.documents) == 0 {
		if found.reached != nil {
			s.after, s.unread = found.reached, true
			return nil
		}
		if found.listed {
			return nil
		}
		if !s.rest.begun && !found.short {
			return errNoEnd
		}
		s.pass(found.searched)
		return nil
	}
	s.chunk = make([]relay.Change, 0, len(found.documents))
	size := 0
	for i, document := range found.documents {
		var key bson.Raw
		var err error
		if found.listed {
			key = found.keys[i]
		} else if key, err = s.keyOf(document); err != nil {
			return err
		}
		s.after, s.unread = key, false
		s.count++
		size += len(document)
		s.chunk = append(s.chunk, s.change(document))
	}
	s.size = max(size/len(found.documents), 1)
	s.open = s.openIn(found)
	if found.short && s.plan.EndShort {
		s.pass(bson.RawValue{})
	}
	return nil
}

// change is the change event that a document's insert would have been, but for
// its operation.
func (s *Source) change(document bson.Raw) relay.Change {
	build := bsoncore.NewDocumentBuilder().
		AppendString("operationType", string(contract.Snapshot)).
		AppendTimestamp("clusterTime", s.start.Seconds, s.start.Increment).
		StartDocument("ns").
		AppendString("db", s.collection.Database().Name()).
		AppendString("coll", s.collection.Name()).
		FinishDocument().
		StartDocument("documentKey").
		AppendValue("_id", core(document.Lookup("_id"))).
		FinishDocument().
		AppendDocument("fullDocument", bsoncore.Document(document))
	token := bsoncore.NewDocumentBuilder().AppendDocument("after", s.after).AppendInt64("copied", s.count)
	return relay.Change{
		Raw:      build.Build(),
		Token:    token.Build(),
		Position: contract.SnapshotPosition(s.start.Seconds, s.start.Increment, uint64(s.count)),
		Time:     time.Unix(int64(s.start.Seconds), 0),
	}
}

func core(value bson.RawValue) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.Type(value.Type), Data: value.Value}
}
