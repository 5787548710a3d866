package engine

import (
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Image says what a change stream does with the documents as they were before
// and after a change, which a collection keeps only when it is told to
// (https://www.mongodb.com/docs/manual/changeStreams/#change-streams-with-document-pre--and-post-images).
type Image uint8

// The zero Image is NoImage.
const (
	NoImage Image = iota
	// ImageWhenAvailable is null where the collection did not keep it.
	ImageWhenAvailable
	// ImageRequired fails the stream where the collection did not keep it.
	ImageRequired
)

// missing refuses an event without an image that is required.
func (o StreamOptions) missing(e *oplog.Entry, token oplog.ResumeToken) error {
	switch {
	case o.PreImage == ImageRequired && e.HasPreImage() && e.Before == nil && o.EarlyImage:
		return mongoerr.New(51770,
			"Change stream was configured to require a pre-image for all update, delete and replace events, but no pre-image optime was recorded for event: %s",
			token.Document())
	case o.PreImage == ImageRequired && e.HasPreImage() && e.Before == nil:
		return errNoImage("pre", token)
	case o.PostImage == ImageRequired && e.Operation == oplog.OpUpdate && e.After == nil:
		return errNoImage("post", token)
	}
	return nil
}

func errNoImage(kind string, token oplog.ResumeToken) error {
	return mongoerr.New(mongoerr.NoMatchingDocument,
		"Change stream was configured to require a %s-image for all update, delete and replace events, but the %s-image was not found for event: %s",
		kind, kind, token.Document())
}
