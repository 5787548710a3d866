package backfill

import (
	"context"
	"errors"
	"time"

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

// fewer is n, halved as often as chunks have not been read in time.
func (s *Source) fewer(n int) int { return max(n>>s.halved, 1) }
