package changestream

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
)

// glance is how long the server may hold back an empty answer to who asks what is there.
const glance = 20 * time.Millisecond

// Quiet reports whether there is no change behind a token that was committed before a
// time. A stream that reads nothing learns that once a second at most; this asks at once.
// It asks for no images, so of what it sees nothing is split.
func (s Source) Quiet(ctx context.Context, token []byte, before checkpoint.ClusterTime) (bool, error) {
	token = unsplit(token)
	o := options.ChangeStream().SetStartAfter(bson.Raw(token)).SetBatchSize(1).SetMaxAwaitTime(glance)
	stream, err := s.begin(ctx, append(s.Pipeline(), bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}}), o)
	if err != nil {
		return false, fmt.Errorf("look behind the last change that was read: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = stream.Close(closing) // a cursor that is not closed times out on the server
	}()
	for {
		// At its own token a stream has not looked yet: more of a transaction may follow,
		// whose changes have one time.
		if looked := stream.ResumeToken(); !bytes.Equal(looked, token) && !timeOf(PositionOf(looked)).Next().Before(before) {
			return true, nil
		}
		switch {
		case stream.TryNext(ctx):
			return false, nil
		case stream.Err() != nil:
			return false, fmt.Errorf("look behind the last change that was read: %w", stream.Err())
		case stream.ID() == 0:
			return false, errClosed
		}
	}
}
