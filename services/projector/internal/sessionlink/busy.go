package sessionlink

import (
	"errors"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/session"
)

// orBusy is err, as a *session.BusyError where the service throttles.
func orBusy(err error) error {
	if err == nil || classify(err) != namespace.Busy {
		return err
	}
	return busy(err)
}

func busy(err error) error { return &session.BusyError{Pause: namespace.Pause(err), Err: err} }

// endsLink tells whether a link has ended, alone or with its AMQP session.
func endsLink(err error) bool {
	_, link := errors.AsType[*amqp.LinkError](err)
	_, lane := errors.AsType[*amqp.SessionError](err)
	return link || lane
}

// endedBusy tells whether the connection has ended because the service throttles. An
// accept may be tried again; what was held is held no more, so a settlement or a renewal
// may not.
func endedBusy(err error) bool {
	conn, ok := errors.AsType[*amqp.ConnError](err)
	if !ok || conn.RemoteErr == nil {
		return false
	}
	class, _ := namespace.OfCondition(conn.RemoteErr.Condition)
	return class == namespace.Busy
}
