package servicebus

import (
	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/session"
)

// orBusy is err, as a *session.BusyError where the service throttles.
func orBusy(err error) error {
	if err == nil || classify(err) != namespace.Busy {
		return err
	}
	return &session.BusyError{Pause: namespace.Pause(err), Err: err}
}
