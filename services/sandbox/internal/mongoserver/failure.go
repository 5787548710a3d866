package mongoserver

import (
	"errors"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongoerr"
)

// arrayKey is the name of an array's element.
func arrayKey(i int) string { return strconv.Itoa(i) }

// failed makes the reply of a command that failed.
func (c *call) failed(failure error) *reply {
	e := mongoerr.From(failure)
	if e.Code == mongoerr.InternalError {
		c.conn.log.Error().Err(failure).Str("command", c.name).Msg("command failed inside the sandbox")
	}
	r := newReply()
	r.ok = 0
	labels := c.labels(e)
	if exact := (*exactLabels)(nil); errors.As(failure, &exact) {
		labels = e.Labels
	}
	if len(labels) > 0 {
		r.strings("errorLabels", labels)
	}
	r.text("errmsg", e.Message)
	if e.Code != 0 {
		r.int32("code", int32(e.Code))
		r.text("codeName", e.Name())
	}
	r.extra(e)
	if isNotPrimary(e.Code) {
		// Clients tell by it that nothing has changed, and go on with this server.
		c.server.topologyVersion(r, c.server.election.now())
	}
	return r
}

// labels are those that the error brings and those that follow from where it
// happened.
func (c *call) labels(e *mongoerr.Error) []string {
	labels := slices.DeleteFunc(slices.Clone(e.Labels), func(label string) bool {
		// A conflict is transient for transactions only.
		return label == transientTransaction && !c.generic.inTransaction()
	})
	ends := c.name == "commitTransaction" || c.name == "abortTransaction"
	if c.generic.inTransaction() && isTransient(e.Code, ends) && !slices.Contains(labels, transientTransaction) {
		labels = append(labels, transientTransaction)
	}
	retryable := c.generic.txnNumber != nil && (!c.generic.inTransaction() || ends)
	if retryable && isRetryableWriteError(e.Code) && !slices.Contains(labels, retryableWrite) {
		labels = append(labels, retryableWrite)
	}
	if c.streaming && isResumable(e.Code) && !slices.Contains(labels, resumableStream) {
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
	return isRetryableWriteError(code)
}

// isRetryableWriteError tells codes after which a client is to send a retryable
// write again (https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md).
func isRetryableWriteError(code mongoerr.Code) bool {
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

// isTransient tells codes after which a client may run its transaction again.
// A commit or abort that meets a retryable error is retried by itself.
func isTransient(code mongoerr.Code, ends bool) bool {
	switch code {
	case mongoerr.WriteConflict, mongoerr.SnapshotUnavailable, mongoerr.NoSuchTransaction, mongoerr.LockTimeout,
		preparedTransactionInProgress:
		return true
	}
	return !ends && isRetryableWriteError(code)
}

// extra writes the further fields of an error.
func (r *reply) extra(e *mongoerr.Error) {
	if len(e.Extra) == 0 {
		return
	}
	doc, err := bson.Marshal(e.Extra)
	if err != nil {
		return // the error stands without them
	}
	r.append(doc)
}

func (r *reply) writeConcernError(e *mongoerr.Error) {
	r.openDocument("writeConcernError")
	r.int32("code", int32(e.Code))
	r.text("codeName", e.Name())
	r.text("errmsg", e.Message)
	r.close()
}
