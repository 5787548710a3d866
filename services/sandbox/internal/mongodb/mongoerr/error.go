package mongoerr

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Error is a refusal in the server's own words.
type Error struct {
	Code    Code
	Message string
	// Labels are the reply's errorLabels, e.g. TransientTransactionError.
	Labels []string
	// Extra are further fields of the error itself, e.g. keyPattern and
	// keyValue of a duplicate key.
	Extra bson.D
}

// New makes an error whose text is formatted as by fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error gives the server's text with the name of the code before it.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Name is the reply's codeName.
func (e *Error) Name() string { return e.Code.String() }

// WithLabels returns a copy of e that carries these labels as well.
func (e *Error) WithLabels(labels ...string) *Error {
	c := *e
	c.Labels = append(slices.Clone(e.Labels), labels...)
	return &c
}

// WithExtra returns a copy of e that carries one more field.
func (e *Error) WithExtra(key string, value any) *Error {
	c := *e
	c.Extra = append(slices.Clone(e.Extra), bson.E{Key: key, Value: value})
	return &c
}

// Prefixed returns a copy of e with text put before its message, the way the
// server says which part of a command it was reading.
func (e *Error) Prefixed(format string, args ...any) *Error {
	c := *e
	c.Message = fmt.Sprintf(format, args...) + " :: caused by :: " + e.Message
	return &c
}

// From finds the Error in err's chain. Any other error becomes an
// InternalError with err's text; nil stays nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return New(InternalError, "%s", err)
}

// Is reports whether err is, or wraps, an Error of that code.
func Is(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
