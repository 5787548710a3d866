package readmodel

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// class is what an error code of the server means for a write.
type class string

const (
	// data: the write is refused for what it says, now and later.
	data class = "data"
	// passing: it may be stored later. The default: what nobody knows is tried
	// again, where an operator sees it, and never set aside.
	passing class = "passing"
)

const duplicateKey = 11000

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
	40:    "ConflictingUpdateOperators",
	52:    "DollarPrefixedFieldName",
	53:    "InvalidIdField",
	56:    "EmptyFieldName",
	57:    "DottedFieldName",
	66:    "ImmutableField",
	121:   "DocumentValidationFailure",
	10334: "BSONObjectTooLarge",
	17280: "KeyTooLong",
	17419: "the document would become too large",
	17420: "the document would become too large",
}

// classify says what an error code of the server means for the write.
func classify(code int) class {
	if _, found := dataCodes[code]; found {
		return data
	}
	return passing
}

// isAboutData tells whether a whole command was refused for what one of its
// writes says: by the server, or by the driver that could not encode it.
func isAboutData(err error) bool {
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

// ofAnotherIndex tells whether a duplicate key is not that of _id.
func ofAnotherIndex(e mongo.WriteError) bool {
	if pattern, ok := e.Raw.Lookup("keyPattern").DocumentOK(); ok {
		return pattern.Lookup("_id").Type == 0
	}
	// Servers before 4.4 name the index in the text alone.
	if _, index, found := strings.Cut(e.Message, " index: "); found {
		return !strings.HasPrefix(index, "_id_")
	}
	return false
}
