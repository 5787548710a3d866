package changestream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
)

// oplogTimeout bounds asking for the oldest entry where nothing rests on the answer.
const oplogTimeout = 3 * time.Second

// errOutOfReach is what a server should say of a token that its operation log
// no longer reaches back to.
var errOutOfReach = errors.New("the oldest entry of the operation log is later")

// Oldest returns the time of the oldest entry in the operation log. It needs
// the right to read local.oplog.rs; a sharded cluster does not show it.
func Oldest(ctx context.Context, client *mongo.Client) (checkpoint.ClusterTime, error) {
	ctx, cancel := context.WithTimeout(ctx, oplogTimeout)
	defer cancel()
	return oldest(ctx, client)
}

// oldest is Oldest for as long as ctx lets it.
func oldest(ctx context.Context, client *mongo.Client) (checkpoint.ClusterTime, error) {
	var entry struct {
		TS bson.Timestamp `bson:"ts"`
	}
	err := client.Database("local").Collection("oplog.rs").FindOne(ctx, bson.D{}, options.FindOne().
		SetSort(bson.D{{Key: "$natural", Value: 1}}).
		SetProjection(bson.D{{Key: "ts", Value: 1}})).Decode(&entry)
	if err != nil {
		return checkpoint.ClusterTime{}, fmt.Errorf("read the oldest entry of the operation log: %w", err)
	}
	return checkpoint.ClusterTime{Seconds: entry.TS.T, Increment: entry.TS.I}, nil
}

// Uncut tells that the operation log has still what a replica set begins with: it is as
// short as the set is young, and says nothing of how much it will keep.
func Uncut(ctx context.Context, client *mongo.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, oplogTimeout)
	defer cancel()
	var entry struct {
		O struct {
			Message string `bson:"msg"`
		} `bson:"o"`
	}
	err := client.Database("local").Collection("oplog.rs").FindOne(ctx, bson.D{}, options.FindOne().
		SetSort(bson.D{{Key: "$natural", Value: 1}}).
		SetProjection(bson.D{{Key: "o.msg", Value: 1}})).Decode(&entry)
	return err == nil && entry.O.Message == "initiating set"
}

// checkReach returns a *HaltError when the operation log no longer reaches back
// to the token. Servers before 4.4.2 do not say so: they open the stream, are
// silent, and fail at the first change that matches. Where the server withholds
// the log it warns once and returns nil; where it does not answer, an error.
func (s *Stream) checkReach(ctx context.Context) error {
	seconds, increment, err := PositionOf(s.start.Token).ClusterTime()
	if err != nil {
		return nil
	}
	first, err := oldest(ctx, s.source.Database.Client())
	if passing(err) {
		return err
	}
	if err != nil && !s.reachUnknown {
		s.reachUnknown = true
		s.log.Warn().Err(err).Msg("whether the operation log reaches back to the checkpoint is not known, and a server before 4.4.2 would not say that it does not: let the role find in local.oplog.rs")
	}
	if err != nil || !(checkpoint.ClusterTime{Seconds: seconds, Increment: increment}).Before(first) {
		return nil
	}
	return &HaltError{Reason: HistoryLost, Err: fmt.Errorf("%w, %s, than the checkpoint, %s",
		errOutOfReach, first.Time().Format(time.RFC3339), time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339))}
}

// interrupted are the server's codes for a question that it would have answered
// at another moment. See https://github.com/mongodb/specifications/blob/master/source/retryable-reads/retryable-reads.md
var interrupted = []int{6, 7, 50, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}

// passing reports an error that is no answer, so that it says nothing.
func passing(err error) bool {
	if err == nil || errors.Is(err, mongo.ErrNoDocuments) {
		return false
	}
	server, ok := errors.AsType[mongo.ServerError](err)
	return !ok || mongo.IsNetworkError(err) || slices.ContainsFunc(interrupted, server.HasErrorCode)
}
