package backfill_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/relay"
)

// TestCopy_GoesOnBehindADocumentThatFillsAChunk has such a document first, twice in the
// middle, and last in the order.
func TestCopy_GoesOnBehindADocumentThatFillsAChunk(t *testing.T) {
	t.Parallel()
	some := bson.D{{Key: "version", Value: bson.D{{Key: "$gt", Value: 0}}}}
	for name, tt := range map[string]struct {
		plan  backfill.Plan
		index []string
		bytes int
	}{
		"events along a whole index":     {plan: backfill.Plan{Order: byVersion}, index: byVersion, bytes: 4 << 20},
		"events along a unique index":    {plan: backfill.Plan{Order: byVersion}, index: byVersion[:2], bytes: 4 << 20},
		"events without an index":        {plan: backfill.Plan{Order: byVersion}, bytes: 4 << 20},
		"documents":                      {plan: backfill.Plan{Order: byVersion[2:]}, bytes: 4 << 20},
		"a resend of events":             {plan: backfill.Plan{Order: byVersion, Bytes: 256 << 10, Chunk: 500, EndShort: true}, index: byVersion, bytes: 256 << 10},
		"a resend of events, one each":   {plan: backfill.Plan{Order: byVersion, Bytes: 256 << 10, Chunk: 1, EndShort: true}, index: byVersion, bytes: 256 << 10},
		"a resend of documents":          {plan: backfill.Plan{Order: byVersion[2:], Bytes: 256 << 10, Chunk: 500, EndShort: true}, bytes: 256 << 10},
		"a resend of some events":        {plan: backfill.Plan{Order: byVersion, Filter: some, Bytes: 256 << 10, Chunk: 500, EndShort: true}, index: byVersion, bytes: 256 << 10},
		"a resend of certain aggregates": {plan: backfill.Plan{Order: byVersion, Filter: some, Narrow: true, Bytes: 256 << 10, Chunk: 500, EndShort: true}, index: byVersion, bytes: 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if tt.index != nil {
				index(t, events, len(tt.index) == 2, tt.index...)
			}
			for version := range 10 {
				one := bson.D{{Key: "_id", Value: version}, {Key: "aggregateId", Value: "a"}, {Key: "version", Value: version + 1}}
				if slices.Contains([]int{0, 4, 5, 9}, version) {
					one = append(one, bson.E{Key: "attachment", Value: strings.Repeat("x", tt.bytes)})
				}
				insertAll(t, events, []any{one})
			}
			want := sorted(t, events, tt.plan.Order)
			if got, err := untilFailed(t, events, tt.plan); !slices.Equal(got, want) || !errors.Is(err, backfill.ErrDone) {
				t.Errorf("copied are %v, %v, want %v", got, err, want)
			}
		})
	}
}

// untilFailed are the keys of what a copy reads up to its end, or to the first read that
// fails.
func untilFailed(t *testing.T, events *mongo.Collection, plan backfill.Plan) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) {
		if message == "chunk not copied, trying again" {
			cancel()
		}
	}))
	source := backfill.New(events, plan, begin(t, events), log)
	var all []relay.Change
	for {
		batch, err := source.Read(ctx)
		if err != nil {
			return keys(all), err
		}
		all = append(all, batch.Changes...)
	}
}

// TestCopy_TakesNoFullChunkForItsEnd has a chunk of which the server may have more, and
// none of it is left.
func TestCopy_TakesNoFullChunkForItsEnd(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"events": byVersion, "documents": byVersion[2:]} {
		if ended, err := backfill.TakeFullOfNothing(order); ended || err == nil {
			t.Errorf("%s: ended is %v, %v, want an error", name, ended, err)
		}
	}
}

// TestCopy_ReadsNoMoreThanAChunkHoldsOfWhatItListed has no index, and documents of which
// three are more than a chunk is to hold.
func TestCopy_ReadsNoMoreThanAChunkHoldsOfWhatItListed(t *testing.T) {
	t.Parallel()
	events := collection(t)
	var documents []any
	for n := range 20 {
		documents = append(documents, bson.D{{Key: "_id", Value: n}, {Key: "aggregateId", Value: "a"}, {Key: "attachment", Value: strings.Repeat("x", 40<<10)}})
	}
	insertAll(t, events, documents)
	source := backfill.New(events, backfill.Plan{Order: []string{"aggregateId", "_id"}, Bytes: 100 << 10}, begin(t, events), zerolog.Nop())
	read := 0
	for {
		batch, err := source.Read(t.Context())
		if errors.Is(err, backfill.ErrDone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Changes) > 3 {
			t.Fatalf("a chunk has %d documents, want 3 at most", len(batch.Changes))
		}
		read += len(batch.Changes)
	}
	if read != len(documents) {
		t.Errorf("%d documents were read, want %d", read, len(documents))
	}
}
