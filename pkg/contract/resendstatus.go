package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ResendStatus is how far a resend is, as publisher resend status --json prints it: one JSON
// object a line, the last resend first. A reader ignores fields that it does not know, and a
// field that is absent is not known.
type ResendStatus struct {
	// ID names the resend, and Number counts those of the stream, from 1 on.
	ID     string `json:"id"`
	Number int64  `json:"number,omitempty"`
	// Stream is the publisher's name for its stream, and Source that of its events.
	Stream string `json:"stream,omitempty"`
	Source string `json:"source,omitempty"`
	// Mode is ResendOfDocuments where the state of documents is sent, rather than events.
	Mode string `json:"mode,omitempty"`
	// State is one of the constants below. A sender may add others: a resend in one of those
	// has not ended.
	State string `json:"state"`
	// Group is whom it is for; empty where that is everybody.
	Group string `json:"group,omitempty"`
	// Selection is what it is of, an object; absent where that is everything.
	Selection json.RawMessage `json:"selection,omitempty"`
	Why       string          `json:"why,omitempty"`
	// BeganAt is by the clock of the publisher's command line that began it, EndedAt by that
	// of whoever ended it; zero before. ReportedAt is when this was said.
	BeganAt    time.Time `json:"began_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	ReportedAt time.Time `json:"reported_at,omitzero"`
	// Documents is how many were selected when it began.
	Documents *int64 `json:"documents,omitempty"`
	// Sent and Failed count messages.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
	// SecondsLeft is an estimate.
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
	// Short is why it has ended without all that was selected.
	Short []string `json:"short,omitempty"`
	// Warnings are why it does not go on.
	Warnings []string `json:"warnings,omitempty"`
}

// The states of a resend: one that its command has not yet left to the publisher, those in
// which there is more to come, and those in which there is not. It is done when all that was
// selected was sent, or counted as failed, and incomplete when it came to an end before.
const (
	ResendBeginning  = "beginning"
	ResendRunning    = "running"
	ResendPaused     = "paused"
	ResendDone       = "done"
	ResendIncomplete = "incomplete"
	ResendCancelled  = "cancelled"
)

// ResendOfDocuments is the mode of a resend of the state of documents.
const ResendOfDocuments = "documents"

// Ended tells whether there is nothing more to come of it.
func (s *ResendStatus) Ended() bool {
	return s.State == ResendDone || s.State == ResendIncomplete || s.State == ResendCancelled
}

// errNoResend is for JSON that is of something else.
var errNoResend = errors.New("it has no id and no state of a resend")

// ReadResendStatus reads what publisher resend status --json has printed. The error names the
// first resend that cannot be read.
func ReadResendStatus(from io.Reader) (all []ResendStatus, err error) {
	for decoder := json.NewDecoder(from); ; {
		var status ResendStatus
		err := decoder.Decode(&status)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && (status.ID == "" || status.State == "") {
			err = errNoResend
		}
		if err != nil {
			return nil, fmt.Errorf("read resend %d of what publisher resend status --json prints: %w", len(all)+1, err)
		}
		all = append(all, status)
	}
}
