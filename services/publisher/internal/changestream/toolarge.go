package changestream

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// keyOfNext returns what can be told of the next change without reading it
// whole: the server cuts it down before it has to fit in a document.
func (s *Stream) keyOfNext(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	stream, err := s.source.watch(ctx, s.placed(options.ChangeStream()), bson.D{{Key: "$project", Value: bson.D{
		{Key: "operationType", Value: 1}, {Key: "ns", Value: 1}, {Key: "documentKey", Value: 1},
	}}})
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }() // a cursor that is not closed times out
	if !stream.TryNext(ctx) {
		return "", stream.Err()
	}
	change := stream.Current
	return fmt.Sprintf("%s of %s in %s", change.Lookup("operationType"), change.Lookup("documentKey"), change.Lookup("ns")), nil
}

// judge returns the *HaltError of an error that opening the stream again does
// not cure; nil where it may.
func (s *Stream) judge(ctx context.Context, err error) *HaltError {
	halt := classify(err)
	switch {
	case halt == nil:
		return nil
	case halt.Reason == HistoryLost && s.moved && isFatal(err):
		// A stream that was read from had its history. If it is gone since, the
		// attempt to open the next says so, or the first that is read of that.
		return nil
	case s.splitting && s.start.Token != nil && s.refused == nil && isFatal(err):
		s.refused = halt
		return nil // open looks whether the source has the change
	case halt.Reason == ChangeTooLarge:
		if key, keyErr := s.keyOfNext(ctx); keyErr == nil && key != "" {
			halt.Err = fmt.Errorf("%w: it is the %s", halt.Err, key)
		}
	}
	return halt
}
