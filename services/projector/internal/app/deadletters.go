package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/settings"
)

// deadLine is a dead letter as it is printed.
type deadLine struct {
	SequenceNumber int64         `json:"sequence_number"`
	MessageID      string        `json:"message_id"`
	SessionID      string        `json:"session_id,omitempty"`
	Subject        string        `json:"subject,omitempty"`
	Reason         string        `json:"reason"`
	Description    string        `json:"description"`
	EnqueuedAt     time.Time     `json:"enqueued_at"`
	BodyBytes      int           `json:"body_bytes"`
	Message        *shownMessage `json:"message,omitempty"`
}

func line(d servicebus.DeadLetter) deadLine {
	return deadLine{
		SequenceNumber: d.SequenceNumber, MessageID: d.ID, SessionID: d.SessionID, Subject: d.Subject,
		Reason: d.Reason, Description: d.Description, EnqueuedAt: d.EnqueuedAt, BodyBytes: len(d.Body),
	}
}

type deadCommandFunc func(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder) error

// discardWait is how long a discard waits for one more dead letter.
const discardWait = 3 * time.Second

var (
	errNoDeadLetter = errors.New("there is no such dead letter")
	errDeadLocked   = errors.New("the dead letter is locked by another, try again later")
)

// deadCommand is the command on dead letters that the arguments name, or nil.
func deadCommand(name string, args []string) deadCommandFunc {
	if name == "list" && len(args) == 0 {
		return listDead
	}
	if len(args) != 1 {
		return nil
	}
	number, err := strconv.ParseInt(args[0], 10, 64)
	switch {
	case name == "show" && err == nil:
		return func(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder) error {
			return showDead(ctx, letters, lines, number)
		}
	case name == "discard" && (err == nil || args[0] == "--all"):
		all := err != nil
		return func(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder) error {
			return discardDead(ctx, letters, lines, number, all)
		}
	}
	return nil
}

// onDeadLetters runs a command on the dead letters of the subscription.
func onDeadLetters(ctx context.Context, stdout, stderr io.Writer, command deadCommandFunc) error {
	var cfg busConfig
	if err := settings.Load(&cfg, cfg.check); err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	bus, err := cfg.reach()
	if err != nil {
		return err
	}
	letters, err := servicebus.OpenDeadLetters(bus)
	if err != nil {
		return err
	}
	if err = command(ctx, letters, json.NewEncoder(stdout)); err != nil {
		err = errors.New(newRedactor(&Config{ServiceBusConnectionString: cfg.ConnectionString}).text(err.Error()))
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, letters.Close(closing))
}

func listDead(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder) error {
	return letters.Peek(ctx, func(d servicebus.DeadLetter) error { return lines.Encode(line(d)) })
}

func showDead(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder, number int64) error {
	letter, err := findDead(ctx, letters, number)
	if err != nil {
		return err
	}
	whole, shown := line(letter), show(letter.Message.Message)
	whole.Message = &shown
	return lines.Encode(whole)
}

// errFound ends a search.
var errFound = errors.New("found")

func findDead(ctx context.Context, letters *servicebus.DeadLetters, number int64) (letter servicebus.DeadLetter, err error) {
	err = letters.Peek(ctx, func(d servicebus.DeadLetter) error {
		if d.SequenceNumber == number {
			letter = d
			return errFound
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return letter, nil
	case err == nil:
		err = errNoDeadLetter
	}
	return letter, err
}

// discardDead removes a dead letter, or all. It looks first, since the search
// for one that is not there would lock the others for nothing.
func discardDead(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder, number int64, all bool) error {
	removed := 0
	each := func(d servicebus.DeadLetter) error {
		removed++
		return lines.Encode(line(d))
	}
	if all {
		return letters.DiscardAll(ctx, discardWait, each)
	}
	if _, err := findDead(ctx, letters, number); err != nil {
		return err
	}
	err := letters.Discard(ctx, discardWait, number, each)
	if err == nil && removed == 0 {
		err = errDeadLocked
	}
	return err
}
