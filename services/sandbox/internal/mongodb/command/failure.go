package command

import (
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// failed makes the reply of a command that failed.
func (c *Call) failed(failure error) *Reply {
	e := mongoerr.From(failure)
	if e.Code == mongoerr.InternalError {
		c.Conn.Log.Error().Err(failure).Str("command", c.Name).Msg("command failed inside the sandbox")
	}
	r := NewReply()
	r.ok = 0
	labels := c.labels(e)
	if exact := (*exactLabels)(nil); errors.As(failure, &exact) {
		labels = e.Labels
	}
	if len(labels) > 0 {
		r.Strings("errorLabels", labels)
	}
	r.Text("errmsg", e.Message)
	if e.Code != 0 {
		r.Int32("code", int32(e.Code))
		r.Text("codeName", e.Name())
	}
	r.Extra(e)
	if unsatisfied := c.Generic.writeConcern.unsatisfied(); unsatisfied != nil && c.begun && c.command.Waits {
		r.writeConcernError(unsatisfied)
	}
	if isNotPrimary(e.Code) {
		// Clients tell by it that nothing has changed, and go on with this server.
		c.Server.TopologyVersion(r, c.Server.Election.Now())
	}
	return r
}

// labels are those that the error brings and those that follow from where it
// happened.
func (c *Call) labels(e *mongoerr.Error) []string {
	labels := slices.DeleteFunc(slices.Clone(e.Labels), func(label string) bool {
		// A conflict is transient for transactions only.
		return label == transientTransaction && !c.Generic.InTransaction()
	})
	ends := c.Name == "commitTransaction" || c.Name == "abortTransaction"
	if c.Generic.InTransaction() && IsTransient(e.Code, ends) && !slices.Contains(labels, transientTransaction) {
		labels = append(labels, transientTransaction)
	}
	retryable := c.Generic.TxnNumber != nil && (!c.Generic.InTransaction() || ends)
	if retryable && IsRetryableWriteError(e.Code) && !slices.Contains(labels, retryableWrite) {
		labels = append(labels, retryableWrite)
	}
	if c.Streaming && isResumable(e.Code) && !slices.Contains(labels, resumableStream) {
		labels = append(labels, resumableStream)
	}
	return labels
}

const (
	transientTransaction = "TransientTransactionError"
	retryableWrite       = "RetryableWriteError"
	resumableStream      = "ResumableChangeStreamError"
)

// isResumable tells codes after which a client is to resume its change stream
// (https://github.com/mongodb/specifications/blob/master/source/change-streams/change-streams.md).
func isResumable(code mongoerr.Code) bool {
	switch code {
	case 63, 133, 150, 234, 13388, mongoerr.CursorNotFound:
		return true
	}
	return IsRetryableWriteError(code)
}

// IsRetryableWriteError tells codes after which a client is to send a retryable
// write again (https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md).
func IsRetryableWriteError(code mongoerr.Code) bool {
	switch code {
	case 6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436:
		return true
	}
	return false
}

// isNotPrimary tells codes of a server that has ceased to be the primary.
func isNotPrimary(code mongoerr.Code) bool {
	switch code {
	case 189, 10058, 10107, 11602, 13435, 13436:
		return true
	}
	return false
}

// preparedTransactionInProgress comes from sharded clusters only, and from fail
// points.
const preparedTransactionInProgress mongoerr.Code = 267

// IsTransient tells codes after which a client may run its transaction again.
// A commit or abort that meets a retryable error is retried by itself.
func IsTransient(code mongoerr.Code, ends bool) bool {
	switch code {
	case mongoerr.WriteConflict, mongoerr.SnapshotTooOld, mongoerr.SnapshotUnavailable, mongoerr.NoSuchTransaction, mongoerr.LockTimeout,
		preparedTransactionInProgress:
		return true
	}
	return !ends && IsRetryableWriteError(code)
}

// Extra writes the further fields of an error.
func (r *Reply) Extra(e *mongoerr.Error) {
	if len(e.Extra) == 0 {
		return
	}
	doc, err := bson.Marshal(e.Extra)
	if err != nil {
		return // the error stands without them
	}
	r.Append(doc)
}

func (r *Reply) writeConcernError(e *mongoerr.Error) {
	r.OpenDocument("writeConcernError")
	r.Int32("code", int32(e.Code))
	r.Text("codeName", e.Name())
	r.Text("errmsg", e.Message)
	r.Extra(e)
	r.Close()
}
