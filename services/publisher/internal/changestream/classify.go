package changestream

import (
	"cmp"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Reason is why a stream cannot go on from where it stands.
type Reason string

// The reasons.
const (
	// HistoryLost: the source no longer keeps the changes after the token.
	HistoryLost Reason = "history lost"
	// TokenUnusable: the source does not understand the token, or the token is of
	// a stream with other options.
	TokenUnusable Reason = "resume token unusable"
	// OptionsChanged: the token was given out under other options of the stream.
	OptionsChanged Reason = "stream options changed"
	// ChangeTooLarge: the next change does not fit in a BSON document.
	ChangeTooLarge Reason = "change too large"
	// ImageMissing: a document before or after a change, which the settings require, was not
	// kept, or is kept no more.
	ImageMissing Reason = "image of a change missing"
	// NotReplicated: the source is a standalone server.
	NotReplicated Reason = "source is not a replica set"
	// TooOld: the source is of a version that the driver does not speak with.
	TooOld Reason = "source too old"
	// Refused: the source refuses the stream as it is asked for.
	Refused Reason = "stream refused"
	// SettingsChanged: the settings say another stream than the record does.
	SettingsChanged Reason = "stream settings changed"
	// CopyChanged: the settings say that a copy under way goes along something else.
	CopyChanged Reason = "settings of a copy changed"
	// IDsMixed: an aggregate has ids of several types, so that a copy along them would
	// not send its events in order.
	IDsMixed Reason = "aggregate ids of several types"
	// CollectionReplaced: a collection was renamed onto the source's, or it is
	// another one than it was: documents came that the stream never shows.
	CollectionReplaced Reason = "source collection replaced"
	// CollectionChanged: the source's collection was dropped, or renamed away.
	CollectionChanged Reason = "source collection changed"
)

// Reasons that are about what the state database keeps of the stream.
const (
	// CheckpointMissing: there was a checkpoint, and there is none.
	CheckpointMissing Reason = "checkpoint missing"
	// CheckpointBehind: the checkpoint is of an earlier term than it had.
	CheckpointBehind Reason = "checkpoint went back"
	// CheckpointEmpty: the checkpoint does not say where to go on.
	CheckpointEmpty Reason = "checkpoint without a place"
	// PlaceAhead: the place to go on from is after the source's clock.
	PlaceAhead Reason = "place in the future"
	// RecordLost: what is known of the stream apart from its checkpoint is gone,
	// or went back.
	RecordLost Reason = "stream record lost"
	// StreamRetired: the stream has another number of partitions.
	StreamRetired Reason = "stream retired"
	// StreamShared: the stream is led under another lease.
	StreamShared Reason = "stream led under another lease"
	// SourceChanged: the source is another cluster.
	SourceChanged Reason = "another source"
	// TopicTaken: a new stream would begin in a topic that others send to.
	TopicTaken Reason = "topic not new"
)

// OfState reports whether the reason is about what the state database keeps.
func (r Reason) OfState() bool {
	switch r {
	case CheckpointMissing, CheckpointBehind, CheckpointEmpty, PlaceAhead, RecordLost, StreamRetired, StreamShared, SourceChanged,
		SettingsChanged, OptionsChanged, CopyChanged, TopicTaken:
		return true
	default:
		return false
	}
}

// What an operator may decide. Each is a command as it is typed, but for the words
// in capitals; in PLACE is a time or a position of a change.
const (
	set    = "publisher checkpoint set PLACE --why TEXT"
	reset  = "publisher checkpoint reset --why TEXT"
	accept = "publisher checkpoint accept --why TEXT"
)

var advice = map[Reason]string{
	HistoryLost: "the changes since the checkpoint are gone from the source's operation log; decide with ON_HISTORY_LOST where to go on, or move the checkpoint with " +
		set + ", or begin anew with " + reset,
	TokenUnusable: "the checkpoint does not belong to this stream; check SOURCE_DATABASE, SOURCE_COLLECTION and STREAM_NAME, or decide where to go on with " +
		set + " or " + reset,
	OptionsChanged: "a resume token is good for the options it was given out under; restore what says what is read (SOURCE_COLLECTION, SOURCE_COLLECTIONS, SOURCE_FILTER, FULL_DOCUMENT, FULL_DOCUMENT_BEFORE_CHANGE), " +
		"or go on with the new ones from the time of the checkpoint with " + accept + ", or give the stream a new place with " + reset,
	SettingsChanged: "the stream would be another one; restore the settings, or go on with the new ones from where the checkpoint is with " + accept + ", or begin anew with " + reset,
	ChangeTooLarge:  "the next change is larger than 16 MiB and the source cannot deliver it; decide with ON_HISTORY_LOST where to go on, or move the checkpoint with " + set,
	ImageMissing: "FULL_DOCUMENT or FULL_DOCUMENT_BEFORE_CHANGE is required, and the source has the document no more, or did not keep it: go on without what is missing by setting it to whenAvailable, and then " + accept +
		"; have the collections keep images (changeStreamPreAndPostImages), and the cluster for longer than a publisher may be behind (expireAfterSeconds)",
	CopyChanged: "its rest would not be the rest of what was copied: restore SOURCE_DATABASE, SOURCE_COLLECTION, SERVICEBUS_TOPIC, MODE, FIELD_AGGREGATE_ID, FIELD_VERSION and HEAL_FIELD until it is complete, " +
		"or begin it anew with " + reset + " and START_AT=snapshot",
	IDsMixed: "write those of one type again with ids of the other, and delete them: the copy then goes on by itself; " +
		"or go on without the rest of it with " + set + " --give-up-copy",
	CollectionReplaced: "what is in it now was not read from the stream, unless MONGODB_URI is another cluster's: mend that, or copy it with " + reset + " and START_AT=snapshot, " +
		"or leave it out with " + accept + "; ON_COLLECTION_CHANGE decides what stops the stream",
	CollectionChanged: "look whether that was meant, then run " + accept + "; ON_COLLECTION_CHANGE decides what stops the stream",
	CheckpointMissing: "look at STATE_MONGODB_URI and STATE_DATABASE, and restore the checkpoint, or decide where to go on " +
		"with " + set + " or " + reset,
	CheckpointBehind: "it was restored or written by hand: go on from it with " + accept + ", which sends what came after it again, " +
		"or decide with " + set,
	CheckpointEmpty: "decide where to go on with " + set + " or " + reset,
	PlaceAhead:      "nothing would be read until then: correct START_AT, or move a checkpoint that is there back with " + set + ". Once the place is past, checkpoint accept goes on from it, too",
	RecordLost: "the state database was emptied or restored: go on from the checkpoint that is there with " + accept + ", " +
		"or decide with " + set + " or " + reset,
	StreamRetired: "set PARTITIONS to what publisher status shows",
	StreamShared:  "set the same LEASE_NAME for all publishers of the stream, or another STREAM_NAME for another stream",
	TopicTaken: "whoever sent to it may have a backlog, which this stream would be ahead of: look for another deployment with this topic and another STATE_DATABASE or STREAM_NAME, and end one of them; " +
		"where there is none, begin where it was to begin, or behind the last event that was sent, with " + set + ", or as START_AT says now with " + reset,
	SourceChanged: "check MONGODB_URI; where the move was meant, run " + reset + ", or " + accept + " where the operation log moved, too",
	TooOld:        "the source must be MongoDB 4.4 or later: upgrade it",
	NotReplicated: "change streams need a replica set: start mongod with --replSet and run rs.initiate()",
	Refused:       "check the source's version, SOURCE_FILTER, FULL_DOCUMENT and FULL_DOCUMENT_BEFORE_CHANGE",
}

// Remedies for a record that is lost, where there is no checkpoint to accept.
const (
	// NoPlace is for a checkpoint that has no place.
	NoPlace = "the state database was emptied or restored, and the checkpoint that is there has no place: decide where to go on with " + set + " or " + reset
	// NoCheckpoint is for a record that went back.
	NoCheckpoint = "the state database was restored in part, without the checkpoint: decide where to go on with " + set + " or " + reset
	// NothingLeft is for a stream of which nothing is known any more.
	NothingLeft = "the state database was emptied: restore it, or decide where to go on with publisher checkpoint set --new PLACE --why TEXT " +
		"or publisher checkpoint reset --new --why TEXT"
)

// HaltError says that the stream cannot go on from where it stands, and that
// trying again does not help. Going on elsewhere would lose changes, so that is
// for an operator to decide.
type HaltError struct {
	Reason Reason
	Err    error
	// Remedy is what to do, where that is not what the reason calls for in general.
	Remedy string
}

func (e *HaltError) Error() string {
	return fmt.Sprintf("%s: %s (%v)", e.Reason, cmp.Or(e.Remedy, advice[e.Reason]), e.Err)
}

func (e *HaltError) Unwrap() error { return e.Err }

// fatal is what servers up to 4.4 answer at the first change after a token that
// is gone, and what any server may answer for other reasons later on.
const fatal = 280

func isFatal(err error) bool {
	server, ok := errors.AsType[mongo.ServerError](err)
	return ok && server.HasErrorCode(fatal)
}

// halting are the server's error codes after which reopening from the same
// token cannot succeed.
var halting = map[int]Reason{
	286:   HistoryLost,    // ChangeStreamHistoryLost
	fatal: HistoryLost,    // ChangeStreamFatalError: what older servers answer when the token is gone
	50811: HistoryLost,    // a resume point that an older server does not find
	260:   TokenUnusable,  // InvalidResumeToken
	10334: ChangeTooLarge, // BSONObjectTooLarge
	47:    ImageMissing,   // NoMatchingDocument
	51770: ImageMissing,   // the same of a pre-image, by servers before 6.0
	40573: NotReplicated,  // $changeStream is only supported on replica sets
	40324: Refused,        // unrecognised pipeline stage
	72:    Refused,        // InvalidOptions
	73:    Refused,        // InvalidNamespace
}

// classify returns the *HaltError of an error that trying again cannot cure.
// Everything else is nil and may pass: lost connections, elections, killed
// cursors, missing rights (they can be granted), and codes it does not know.
func classify(err error) *HaltError {
	if halt, ok := errors.AsType[*HaltError](err); ok {
		return halt
	}
	server, ok := errors.AsType[mongo.ServerError](err)
	if !ok {
		return nil
	}
	for _, code := range server.ErrorCodes() {
		if reason, known := halting[code]; known {
			return &HaltError{Reason: reason, Err: err}
		}
	}
	return nil
}

// opening are the codes that say, of a stream that is being opened, that it is
// asked for wrongly. Of a stream that is open they may mean something else.
var opening = map[int]Reason{
	2:     Refused, // BadValue
	9:     Refused, // FailedToParse
	14:    Refused, // TypeMismatch
	168:   Refused, // InvalidPipelineOperator
	40415: Refused, // an option that the server does not know
}

// classifyOpening is classify for an attempt to open a stream at no place.
func classifyOpening(err error) *HaltError {
	if halt := classify(err); halt != nil {
		return halt
	}
	if server, ok := errors.AsType[mongo.ServerError](err); ok {
		for _, code := range server.ErrorCodes() {
			if reason, known := opening[code]; known {
				return &HaltError{Reason: reason, Err: err}
			}
		}
	}
	return nil
}
