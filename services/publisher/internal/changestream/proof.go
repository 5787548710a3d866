package changestream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
)

// errOtherHistory is why a source is not the one that was read before, or an older
// copy of it was put in its place.
var errOtherHistory = errors.New("the last change that was read is not in the source's operation log, which reaches back to it")

// prove returns a *HaltError where the source does not have the last change that was
// read before the token. A server looks for the change of a token, and for none where
// the token is that of an empty read: an older copy of the source, put in its place,
// takes that one as soon as its clock is past it, and its changes come in place of others.
// Where the operation log does not reach back to the change, nothing proves it: that is
// told once.
func (s *Stream) prove(ctx context.Context) error {
	at := s.start.Event
	if s.start.Token == nil || at.IsZero() || !at.Before(timeOf(PositionOf(s.start.Token))) {
		return nil // the server looks for it
	}
	found, err := s.source.has(ctx, at)
	if halt := classify(err); halt != nil && halt.Reason == HistoryLost {
		if !s.unproven {
			s.unproven = true
			s.log.Warn().Err(err).Time("last_change", at.Time()).
				Msg("the operation log does not reach back to the last change that was read, so nothing proves that the source is not an older copy")
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the last change that was read: %w", err)
	}
	if !found {
		return &HaltError{Reason: HistoryLost, Err: fmt.Errorf("%w: it was made at %s; was the source put back to an older copy?",
			errOtherHistory, at.Time().Format(time.RFC3339))}
	}
	return nil
}

// has reports whether a change of the source was made at a time, whatever of its
// changes is read. It asks for times, since a server gives a change another token after an
// upgrade; no two writes have one.
func (s Source) has(ctx context.Context, at checkpoint.ClusterTime) (bool, error) {
	stamp := bson.Timestamp{T: at.Seconds, I: at.Increment}
	bare := Source{Database: s.Database, Collections: s.Collections}
	pipeline := append(bare.Pipeline(), match(bson.D{{Key: "clusterTime", Value: stamp}}), bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}})
	stream, err := bare.begin(ctx, pipeline, options.ChangeStream().SetStartAtOperationTime(&stamp).SetBatchSize(1).SetMaxAwaitTime(await))
	if err != nil {
		return false, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = stream.Close(closing) // a cursor that is not closed times out on the server
	}()
	return shows(ctx, stream, at)
}

// shows reports whether a stream has a change before it is past a time. The server
// closes a stream behind a drop of its collection: then it is past that time as well.
func shows(ctx context.Context, stream *mongo.ChangeStream, at checkpoint.ClusterTime) (bool, error) {
	for !stream.TryNext(ctx) {
		switch {
		case stream.Err() != nil:
			return false, stream.Err()
		case at.Before(timeOf(PositionOf(stream.ResumeToken()))):
			return false, nil
		case stream.ID() == 0:
			return false, errClosed
		}
	}
	return true, nil
}

// timeOf is a position's cluster time; zero where it has none.
func timeOf(position contract.Position) checkpoint.ClusterTime {
	return checkpoint.Place{Position: position}.Time()
}
