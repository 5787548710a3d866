package changestream

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Reason is why a stream can not go on from where it stands.
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
	// NotReplicated: the source is a standalone server.
	NotReplicated Reason = "source is not a replica set"
	// Refused: the source refuses the stream as it is asked for.
	Refused Reason = "stream refused"
)

var advice = map[Reason]string{
	HistoryLost:    "the changes since the checkpoint are gone from the source's operation log; decide with ON_HISTORY_LOST where to go on, or move the checkpoint with publisher checkpoint",
	TokenUnusable:  "the checkpoint does not belong to this stream; check SOURCE_DATABASE, SOURCE_COLLECTION and STREAM_NAME",
	OptionsChanged: "a resume token is good for the options it was given out under; restore what says what is read (SOURCE_COLLECTION, SOURCE_COLLECTIONS, SOURCE_FILTER, FULL_DOCUMENT, FULL_DOCUMENT_BEFORE_CHANGE), or give the stream a new place with publisher checkpoint reset",
	ChangeTooLarge: "the next change is larger than 16 MiB and the source can not deliver it",
	NotReplicated:  "change streams need a replica set: start mongod with --replSet and run rs.initiate()",
	Refused:        "check the source's version, SOURCE_FILTER, FULL_DOCUMENT and FULL_DOCUMENT_BEFORE_CHANGE",
}

// HaltError says that the stream can not go on from where it stands, and that
// trying again does not help. Going on elsewhere would lose changes, so that is
// for an operator to decide.
type HaltError struct {
	Reason Reason
	Err    error
}

func (e *HaltError) Error() string {
	return fmt.Sprintf("%s: %s (%v)", e.Reason, advice[e.Reason], e.Err)
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
// token can not succeed.
var halting = map[int]Reason{
	286:   HistoryLost,    // ChangeStreamHistoryLost
	fatal: HistoryLost,    // ChangeStreamFatalError: what older servers answer when the token is gone
	50811: HistoryLost,    // a resume point that an older server does not find
	260:   TokenUnusable,  // InvalidResumeToken
	10334: ChangeTooLarge, // BSONObjectTooLarge
	40573: NotReplicated,  // $changeStream is only supported on replica sets
	40324: Refused,        // unrecognised pipeline stage
	72:    Refused,        // InvalidOptions
	73:    Refused,        // InvalidNamespace
}

// classify returns the *HaltError of an error that trying again can not cure.
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
