package changestream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var errFragments = errors.New("the fragments of a split change do not follow each other")

// splitStage lets the server split a change that is larger than 16 MiB.
// See https://www.mongodb.com/docs/manual/reference/operator/aggregation/changeStreamSplitLargeEvent/
var splitStage = bson.D{{Key: "$changeStreamSplitLargeEvent", Value: bson.D{}}}

// unknownStage is what a server answers that does not have a stage: this one is
// there from 6.0.9, and from 7.0.
const unknownStage = 40324

// watchSplit opens a stream where it is placed, with large changes split, and
// without that on a server that does not know how to.
func (s Source) watchSplit(
	ctx context.Context, placed func() *options.ChangeStreamOptionsBuilder,
) (stream *mongo.ChangeStream, splitting bool, err error) {
	stream, err = s.watch(ctx, placed(), splitStage)
	if answer, ok := errors.AsType[mongo.ServerError](err); !ok || !answer.HasErrorCode(unknownStage) {
		return stream, true, err
	}
	stream, err = s.watch(ctx, placed())
	return stream, false, err
}

// splitOtherwise reports whether the source has the change of a token that a server that
// splits changes does not find. It finds the token only while the change is split as it
// was, and that rests on the documents that are looked up for it: it may be split no
// more, or only now. A token that was cut off does not end with what names a change.
func (s Source) splitOtherwise(ctx context.Context, token []byte) (bool, error) {
	if !strings.HasSuffix(string(PositionOf(token)), objectEnd+tokenEnd) {
		return false, nil
	}
	found, err := s.has(ctx, timeOf(PositionOf(token)))
	if classify(err) != nil {
		return false, nil // its history is gone
	}
	if err != nil {
		return false, fmt.Errorf("look for the change of the resume token: %w", err)
	}
	return found, nil
}

// reconsider places a stream whose token was refused at the time of the token's change
// where the source has that: what was made at that time is read again. Otherwise it
// returns the refusal.
func (s *Stream) reconsider(ctx context.Context) error {
	if s.refused == nil {
		return nil
	}
	found, err := s.source.splitOtherwise(ctx, s.start.Token)
	if err != nil {
		return err
	}
	if !found {
		return s.refused
	}
	s.start.Token, s.start.At, s.refused = nil, timeOf(PositionOf(s.start.Token)), nil
	s.log.Warn().Time("from", s.start.At.Time()).
		Msg("the last change that was read is split otherwise now, reading what was made at its time again")
	return nil
}

// fragments gathers the parts of one split change.
type fragments struct {
	elements [][]byte // of the parts so far, one after another
	parts    int
	size     int
}

// add takes the next change of the stream, and returns a whole one: itself, or
// the one whose last part it is. It returns nil while parts are missing.
func (f *fragments) add(raw bson.Raw) (bson.Raw, error) {
	split, isPart := raw.Lookup("splitEvent").DocumentOK()
	if !isPart {
		if f.parts > 0 {
			return nil, errFragments
		}
		return raw, nil
	}
	part, _ := split.Lookup("fragment").AsInt64OK()
	of, _ := split.Lookup("of").AsInt64OK()
	if int(part) != f.parts+1 || part > of {
		return nil, errFragments
	}
	elements, err := raw.Elements()
	if err != nil {
		return nil, fmt.Errorf("read a fragment: %w", err)
	}
	for _, element := range elements {
		// Each part has a token of its own; that of the last one resumes behind all.
		if key := element.Key(); key == "splitEvent" || key == "_id" && part < of {
			continue
		}
		f.elements = append(f.elements, append([]byte(nil), element...))
		f.size += len(element)
	}
	f.parts++
	if part < of {
		return nil, nil
	}
	whole := f.join()
	*f = fragments{}
	return whole, nil
}

// join makes one document of all elements.
func (f *fragments) join() bson.Raw {
	const length, terminator = 4, 1
	size := length + f.size + terminator
	whole := make(bson.Raw, 0, size)
	whole = append(whole, byte(size), byte(size>>8), byte(size>>16), byte(size>>24))
	for _, element := range f.elements {
		whole = append(whole, element...)
	}
	return append(whole, 0)
}
