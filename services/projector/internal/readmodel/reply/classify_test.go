package reply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"changerelay/services/projector/internal/delivery"
)

// A transaction that is in the way says nothing about what was to be written, and is
// no aggregate's own fault.
func TestClassify_AConflictIsUnreachable(t *testing.T) {
	t.Parallel()
	err := Unreachable(mongo.CommandError{Code: WriteConflict, Labels: []string{"TransientTransactionError"}})
	if !errors.Is(err, delivery.ErrUnreachable) || !IsUnreachable(err) {
		t.Errorf("got %v, want it unreachable", err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		code int
		want class
	}{
		{"BadValue", 2, data},
		{"FailedToParse", 9, data},
		{"Unauthorized", 13, passing},
		{"TypeMismatch", 14, data},
		{"LockTimeout", 24, passing},
		{"PathNotViable", 28, data},
		{"ConflictingUpdateOperators", 40, data},
		{"MaxTimeMSExpired", 50, passing},
		{"DollarPrefixedFieldName", 52, data},
		{"WriteConcernFailed", 64, passing},
		{"ShardKeyNotFound", 61, data},
		{"ImmutableField", 66, data},
		{"CannotIndexParallelArrays", 171, data},
		{"TransactionTooLarge", 257, data},
		{"geo keys", 16755, data},
		{"the language of a text index", 17262, data},
		{"NetworkTimeout", 89, passing},
		{"ShutdownInProgress", 91, passing},
		{"WriteConflict", 112, passing},
		{"DocumentValidationFailure", 121, data},
		{"StaleConfig", 13388, passing},
		{"PrimarySteppedDown", 189, passing},
		{"InterruptedAtShutdown", 11600, passing},
		{"NotWritablePrimary", 10107, passing},
		{"NotPrimaryNoSecondaryOk", 13435, passing},
		{"BSONObjectTooLarge", 10334, data},
		{"OutOfDiskSpace", 14031, passing},
		{"a full Atlas cluster", 8000, passing},
		{"a code that nobody knows", 424242, passing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := classify(tt.code); got != tt.want {
				t.Errorf("code %d: got %q, want %q", tt.code, got, tt.want)
			}
		})
	}
}

func TestClassify_IsAboutData(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"the driver finds a document too large", driver.ErrDocumentTooLarge, true},
		{"the driver cannot encode a value", mongo.MarshalError{Value: 1, Err: errors.New("no encoder")}, true},
		{"the server cannot parse the command", mongo.CommandError{Code: 9}, true},
		{"the server steps down", mongo.CommandError{Code: 189}, false},
		{"a write is refused", mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 121}}}, true},
		{"a majority is not reached", mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}, false},
		{"the network", errors.New("connection reset"), false},
		{"nothing", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := IsAboutData(tt.err); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestClassify_OfAnotherIndex(t *testing.T) {
	t.Parallel()
	raw := func(key string) bson.Raw {
		document, err := bson.Marshal(bson.D{{Key: "keyPattern", Value: bson.D{{Key: key, Value: 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
	tests := []struct {
		name string
		err  mongo.WriteError
		want bool
	}{
		{"the key", mongo.WriteError{Raw: raw("_id")}, false},
		{"another field", mongo.WriteError{Raw: raw("email")}, true},
		{"the key, of an old server", mongo.WriteError{Message: `E11000 duplicate key error collection: d.c index: _id_ dup key: { _id: "a" }`}, false},
		{"another field, of an old server", mongo.WriteError{Message: `E11000 duplicate key error collection: d.c index: email_1 dup key: { email: "a" }`}, true},
		{"nothing said", mongo.WriteError{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := OfAnotherIndex(tt.err); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestClassify_IsUnreachable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"a primary that steps down", fmt.Errorf("write: %w", mongo.CommandError{Code: 189}), true},
		{"a majority that is not reached", mongo.BulkWriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}, true},
		{"a label", mongo.CommandError{Code: 424242, Labels: []string{"RetryableWriteError"}}, true},
		{"the network", mongo.CommandError{Labels: []string{"NetworkError"}}, true},
		{"no server", topology.ServerSelectionError{Wrapped: errors.New("none")}, true},
		{"a deadline", context.DeadlineExceeded, true},
		{"a write that is refused", mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 121}}}, false},
		{"a right that is missing", mongo.CommandError{Code: 13}, false},
		{"a code that nobody knows", mongo.CommandError{Code: 424242}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := IsUnreachable(tt.err); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
