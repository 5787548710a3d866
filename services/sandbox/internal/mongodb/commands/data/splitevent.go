package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// splitStage is the last stage of a change stream that gives events which are
// too large in fragments
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/changeStreamSplitLargeEvent/).
const splitStage = "$changeStreamSplitLargeEvent"

// takeSplitStage takes the stage off the end of a pipeline.
func takeSplitStage(stages []bson.Raw) (rest []bson.Raw, split bool, err error) {
	for i, stage := range stages {
		if command.StageName(stage) != splitStage {
			continue
		}
		argument, _ := bsonkit.Get(stage, splitStage)
		if doc, ok := argument.DocumentOK(); !ok || len(doc) > len(bsonkit.Empty) {
			return nil, false, mongoerr.New(7182800, "%s spec should be an empty object", splitStage)
		}
		if i < len(stages)-1 {
			return nil, false, mongoerr.New(7182802, "%s must be the last stage in the pipeline", splitStage)
		}
		return stages[:i], true, nil
	}
	return stages, false, nil
}

// fragmentOverhead is what a fragment holds beside fields of the event: its
// token, which may hold a whole _id, is counted by itself.
const fragmentOverhead = 128

// splitEvent makes fragments of an event that is larger than most bytes, none of one
// that is not: the fields of the event in their order, every fragment with a token of
// its own and smaller than that.
func splitEvent(event *engine.Event, most int) ([]*engine.Event, error) {
	if len(event.Doc) <= most {
		return nil, nil
	}
	most -= fragmentOverhead + len(event.Token.Document())
	var groups [][]byte
	var group []byte
	for it := bsonkit.Iterate(event.Doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if name == "_id" {
			continue
		}
		size := 1 + len(name) + 1 + len(v.Value)
		if size > most {
			return nil, command.ErrTooLarge(size)
		}
		if len(group)+size > most {
			groups, group = append(groups, group), nil
		}
		group = append(bsoncore.AppendHeader(group, bsoncore.Type(v.Type), name), v.Value...)
	}
	groups = append(groups, group)
	fragments := make([]*engine.Event, len(groups))
	for i, fields := range groups {
		token := event.Token.Part(uint32(i + 1))
		at, doc := bsoncore.AppendDocumentStart(nil)
		doc = bsoncore.AppendDocumentElement(doc, "_id", bsoncore.Document(token.Document()))
		doc = bsoncore.AppendDocumentElement(doc, "splitEvent", bsoncore.NewDocumentBuilder().
			AppendInt32("fragment", int32(i+1)).AppendInt32("of", int32(len(groups))).Build())
		doc, _ = bsoncore.AppendDocumentEnd(append(doc, fields...), at) // at is where it begins
		fragments[i] = &engine.Event{Token: token, Doc: doc}
	}
	return fragments, nil
}

// resumedAt gives the fragments that are still to come of the event at which a stream
// resumes. Where the event is not split as it was when the client had it, its token is
// not found (document_source_change_stream_split_large_event.cpp and
// document_source_change_stream_check_resumability.cpp).
func resumedAt(event *engine.Event, parts []*engine.Event) ([]*engine.Event, error) {
	given := int(event.Given)
	switch {
	case given == 0 && len(parts) > 0:
		return nil, engine.ErrTokenNotFound()
	case given > 0 && len(parts) == 0:
		return nil, mongoerr.New(mongoerr.ChangeStreamFatalError,
			"Attempted to resume from a split event fragment, but the event in the resumed stream was not large enough to be split")
	case given > len(parts):
		return nil, mongoerr.New(mongoerr.ChangeStreamFatalError, "Attempted to resume from a split event, but the resumed stream "+
			"produced a different split. Ensure that the pipeline used to resume is the same as the original")
	default:
		return parts[given:], nil
	}
}
