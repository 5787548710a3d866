// Package reply says what the replies of the read database's server, and the errors of its
// driver, mean for what was to be written, in words that quote none of it.
package reply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"changerelay/services/projector/internal/delivery"
)

// class is what an error code of the server means for a write.
type class string

const (
	// data: the write is refused for what it says, now and later.
	data class = "data"
	// passing: it may be stored later. The default: what nobody knows is tried
	// again, until it shows that it lasts: see delivery.Config.HaltAfter.
	passing class = "passing"
)

// Codes of the server that a caller branches on.
const (
	// DuplicateKey: a unique index has the key already.
	DuplicateKey = 11000
	// WriteConflict: the transaction of somebody else is in the way.
	WriteConflict = 112
)

// dataCodes are the server's codes for a write that can never be stored.
// Source: mongo/src/mongo/base/error_codes.yml.
var dataCodes = map[int]string{
	2:     "BadValue",
	9:     "FailedToParse",
	14:    "TypeMismatch",
	15:    "Overflow",
	16:    "InvalidLength",
	22:    "InvalidBSON",
	28:    "PathNotViable",
	29:    "NonExistentPath",
	34:    "CannotBackfillArray",
	40:    "ConflictingUpdateOperators",
	52:    "DollarPrefixedFieldName",
	53:    "InvalidIdField",
	54:    "NotSingleValueField",
	55:    "InvalidDBRef",
	56:    "EmptyFieldName",
	57:    "DottedFieldName",
	61:    "ShardKeyNotFound",
	66:    "ImmutableField",
	111:   "NotExactValueField",
	116:   "DocTooLargeForCapped",
	121:   "DocumentValidationFailure",
	171:   "CannotIndexParallelArrays",
	201:   "CannotBuildIndexKeys",
	241:   "ConversionFailure",
	257:   "TransactionTooLarge",
	10334: "BSONObjectTooLarge",
	13026: "a 2d index wants coordinate pairs",
	13027: "a point is outside of its 2d index",
	16755: "geo keys cannot be extracted",
	16766: "a hashed index takes no arrays",
	17261: "a text index wants a language that is a string",
	17262: "a text index does not know the language",
	17280: "KeyTooLong",
	17419: "the document would become too large",
	17420: "the document would become too large",
}

// unreachableCodes are those of a server that is not ready, or that another one
// is in the way of. They say nothing about the write.
// Source: the categories of mongo/src/mongo/base/error_codes.yml.
var unreachableCodes = map[int]string{
	6:     "HostUnreachable",
	7:     "HostNotFound",
	18:    "AuthenticationFailed",
	24:    "LockTimeout",
	46:    "LockBusy",
	50:    "MaxTimeMSExpired",
	63:    "StaleShardVersion",
	64:    "WriteConcernTimeout",
	70:    "ShardNotFound",
	79:    "UnknownReplWriteConcern",
	89:    "NetworkTimeout",
	91:    "ShutdownInProgress",
	100:   "UnsatisfiableWriteConcern",
	112:   "WriteConflict",
	133:   "FailedToSatisfyReadPreference",
	134:   "ReadConcernMajorityNotAvailableYet",
	150:   "StaleEpoch",
	189:   "PrimarySteppedDown",
	202:   "NetworkInterfaceExceededTimeLimit",
	216:   "ElectionInProgress",
	237:   "CursorKilled",
	239:   "SnapshotTooOld",
	246:   "SnapshotUnavailable",
	249:   "StaleDbVersion",
	250:   "StaleChunkHistory",
	251:   "NoSuchTransaction",
	262:   "ExceededTimeLimit",
	290:   "TransactionExceededLifetimeLimitSeconds",
	9001:  "SocketException",
	10058: "LegacyNotPrimary",
	10107: "NotWritablePrimary",
	11600: "InterruptedAtShutdown",
	11601: "Interrupted",
	11602: "InterruptedDueToReplStateChange",
	13388: "StaleConfig",
	13435: "NotPrimaryNoSecondaryOk",
	13436: "NotPrimaryOrSecondary",
	14031: "OutOfDiskSpace",
}

// IsUnreachable tells whether an error says nothing about what was to be written.
func IsUnreachable(err error) bool {
	if mongo.IsNetworkError(err) || mongo.IsTimeout(err) || errors.Is(err, context.Canceled) {
		return true
	}
	if _, ok := errors.AsType[topology.ServerSelectionError](err); ok {
		return true
	}
	e, ok := errors.AsType[mongo.ServerError](err)
	if !ok {
		return false
	}
	for code := range unreachableCodes {
		if e.HasErrorCode(code) {
			return true
		}
	}
	return e.HasErrorLabel("RetryableWriteError") || e.HasErrorLabel("TransientTransactionError")
}

// contendedError is a delivery.ErrUnreachable of a database that answers.
type contendedError struct{ err error }

func (e *contendedError) Error() string {
	return "another transaction is changing the same documents; that of a process that was killed ends after " +
		"transactionLifetimeLimitSeconds of the server (60 s) at the latest: try again: " + e.err.Error()
}

func (e *contendedError) Unwrap() []error { return []error{delivery.ErrUnreachable, e.err} }

// Unreachable makes a delivery.ErrUnreachable of an error that IsUnreachable.
func Unreachable(err error) error {
	if e, ok := errors.AsType[mongo.ServerError](err); ok && e.HasErrorCode(WriteConflict) {
		return &contendedError{err}
	}
	return fmt.Errorf("%w: %w", delivery.ErrUnreachable, err)
}

// Has tells whether an error has a code of the server.
func Has(err error, code int) bool {
	e, ok := errors.AsType[mongo.ServerError](err)
	return ok && e.HasErrorCode(code)
}

// IsData tells whether a code of the server means that a write is refused for what it
// says, now and later.
func IsData(code int) bool { return classify(code) == data }

// classify says what an error code of the server means for the write.
func classify(code int) class {
	if _, found := dataCodes[code]; found {
		return data
	}
	return passing
}

// IsAboutData tells whether a whole command was refused for what one of its
// writes says: by the server, or by the driver that could not encode it.
func IsAboutData(err error) bool {
	if errors.Is(err, driver.ErrDocumentTooLarge) {
		return true
	}
	if _, ok := errors.AsType[mongo.MarshalError](err); ok {
		return true
	}
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		return classify(int(e.Code)) == data
	}
	if e, ok := errors.AsType[mongo.WriteException](err); ok && e.WriteConcernError == nil && len(e.WriteErrors) > 0 {
		return classify(e.WriteErrors[0].Code) == data
	}
	return false
}

// OfAnotherIndex tells whether a duplicate key is not that of _id.
func OfAnotherIndex(e mongo.WriteError) bool {
	if pattern, ok := e.Raw.Lookup("keyPattern").DocumentOK(); ok {
		return pattern.Lookup("_id").Type == 0
	}
	// Servers before 4.4 name the index in the text alone.
	if _, index, found := strings.Cut(e.Message, " index: "); found {
		return !strings.HasPrefix(index, "_id_")
	}
	return false
}
