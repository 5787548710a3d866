package backfill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// maxTimeExpired is what a server answers that runs into the deadline of a question,
// which the driver tells it.
const maxTimeExpired = 50

// mostHalved is how often a chunk of any size is halved until one document is left.
const mostHalved = 16

// timed notes whether the time for a chunk was too short. How long a number of documents
// takes depends on their sizes, the connection and the server's disk, so the next chunk
// has half as many then, and twice as many after one that was read.
func (s *Source) timed(ctx context.Context, err error) {
	server, told := errors.AsType[mongo.ServerError](err)
	due, _ := ctx.Deadline()
	switch {
	case err == nil:
		s.halved = max(s.halved-1, 0)
	case !time.Now().Before(due), told && server.HasErrorCode(maxTimeExpired):
		s.halved = min(s.halved+1, mostHalved)
	}
}

// alone returns an error where all that came, too late for a chunk, is one document, behind
// so many bytes of one that was known: there is nothing smaller to ask for.
func alone(ctx context.Context, document bson.Raw, known int) error {
	if due, _ := ctx.Deadline(); time.Now().Before(due) {
		return nil
	}
	rate := float64(known+len(document)) / chunkTimeout.Seconds()
	return fmt.Errorf("the document with _id %s and %d bytes takes longer than %s to come: the link to the source, and the source, have to give at least %d KB/s",
		document.Lookup("_id"), len(document), chunkTimeout, int(math.Ceil(rate/1000)))
}

// fewer is n, halved as often as chunks have not been read in time.
func (s *Source) fewer(n int) int { return max(n>>s.halved, 1) }
