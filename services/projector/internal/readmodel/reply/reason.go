package reply

import (
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// The server's texts quote what it was sent: keys, values, whole documents. They
// do not go into documents, logs and traces; what a code means does.

// Reason says why the server refuses a write, without its data.
func Reason(code int, details bson.Raw) string {
	if code == DuplicateKey {
		var fields []string
		if pattern, ok := details.Lookup("keyPattern").DocumentOK(); ok {
			if elements, err := pattern.Elements(); err == nil {
				for _, e := range elements {
					fields = append(fields, e.Key())
				}
			}
		}
		if len(fields) == 0 {
			return "the server refuses the write: a unique index has the value in another document (code 11000)"
		}
		return fmt.Sprintf("the server refuses the write: the unique index on %s has the value in another document (code 11000)", strings.Join(fields, ", "))
	}
	name := dataCodes[code]
	if name == "" {
		return fmt.Sprintf("the server refuses the write with code %d", code)
	}
	return fmt.Sprintf("the server refuses the write with code %d (%s)", code, name)
}

// WithoutData is a driver's error with a text of its own where the server's
// quotes what it was sent. It is the same error to errors.Is and errors.As.
func WithoutData(err error) error {
	if err == nil {
		return nil
	}
	return &quietError{err}
}

type quietError struct{ error }

func (e *quietError) Unwrap() error { return e.error }

func (e *quietError) Error() string {
	if bulk, ok := errors.AsType[mongo.BulkWriteException](e.error); ok && len(bulk.WriteErrors) > 0 {
		return Reason(bulk.WriteErrors[0].Code, bulk.WriteErrors[0].Raw)
	}
	if write, ok := errors.AsType[mongo.WriteException](e.error); ok && len(write.WriteErrors) > 0 {
		return Reason(write.WriteErrors[0].Code, write.WriteErrors[0].Raw)
	}
	if command, ok := errors.AsType[mongo.CommandError](e.error); ok && (command.Code == DuplicateKey || classify(int(command.Code)) == data) {
		return Reason(int(command.Code), command.Raw)
	}
	return e.error.Error()
}
