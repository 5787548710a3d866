package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/servicebus"
)

// deadLine is a dead letter as it is printed.
type deadLine struct {
	SequenceNumber int64     `json:"sequence_number"`
	MessageID      string    `json:"message_id"`
	SessionID      string    `json:"session_id,omitempty"`
	Subject        string    `json:"subject,omitempty"`
	Reason         string    `json:"reason"`
	Description    string    `json:"description"`
	EnqueuedAt     time.Time `json:"enqueued_at"`
	BodyBytes      int       `json:"body_bytes"`
	// LackedBy are the projections that lack the event of one that was dead-lettered because
	// they could not apply it: none, once it was applied after all. It is absent where the
	// read database does not say.
	LackedBy *[]string     `json:"lacked_by,omitempty"`
	Message  *shownMessage `json:"message,omitempty"`
	// DryRun tells that a discard would have removed it.
	DryRun bool `json:"dry_run,omitempty"`
}

// wholeLine is a dead letter as it is printed whole.
func wholeLine(d servicebus.DeadLetter) deadLine {
	whole, shown := line(d), show(d.Message.Message)
	whole.Message = &shown
	return whole
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

// deadChange is what a command does that changes something about dead letters,
// one or all.
func deadChange(change func(s *scope, ctx context.Context, letters *servicebus.DeadLetters, number int64, all bool) error) func(context.Context, *scope, []string) error {
	return func(ctx context.Context, s *scope, args []string) error {
		return onDeadLetters(ctx, io.Discard, func(ctx context.Context, letters *servicebus.DeadLetters, _ *json.Encoder) error {
			number, all := number(args)
			return change(s, ctx, letters, number, all)
		})
	}
}

// onDeadLetters runs a command on the dead letters of the subscription.
func onDeadLetters(ctx context.Context, stdout io.Writer, command deadCommandFunc) error {
	cfg, err := config.LoadBus()
	if err != nil {
		return cli.Misconfigured(err)
	}
	err = cfg.ReachDeadLetters(ctx, func(letters *servicebus.DeadLetters) error {
		return command(ctx, letters, printer(stdout))
	})
	if err != nil {
		err = errors.New((&config.Config{ServiceBusConnectionString: cfg.ConnectionString}).Redactor().Text(err.Error()))
	}
	return err
}

func listDead(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder) error {
	var records lackRecords
	defer records.close(ctx)
	return letters.Peek(ctx, func(d servicebus.DeadLetter) error {
		one := line(d)
		one.LackedBy = records.of(ctx, &d)
		return lines.Encode(one)
	})
}

func showDead(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder, number int64) error {
	letter, err := findDead(ctx, letters, number)
	if err != nil {
		return err
	}
	return lines.Encode(wholeLine(letter))
}

// findDead looks for one by its number alone: another that cannot be read is not in its way.
func findDead(ctx context.Context, letters *servicebus.DeadLetters, number int64) (servicebus.DeadLetter, error) {
	letter, found, err := letters.At(ctx, number)
	if err == nil && !found {
		err = errNoDeadLetter
	}
	return letter, err
}

// chosenDead calls each for the dead letter with a number, or for all.
func chosenDead(ctx context.Context, letters *servicebus.DeadLetters, number int64, all bool, each func(servicebus.DeadLetter) error) error {
	if all {
		return letters.Peek(ctx, each)
	}
	letter, err := findDead(ctx, letters, number)
	if err != nil {
		return err
	}
	return each(letter)
}

// rehearseDead prints what discardDead would remove.
func rehearseDead(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder, number int64, all bool) error {
	return chosenDead(ctx, letters, number, all, func(d servicebus.DeadLetter) error {
		whole := wholeLine(d)
		whole.DryRun = true
		return lines.Encode(whole)
	})
}

// discardDead removes a dead letter, or all that it finds, and prints each whole
// before it removes it: there is no other copy. It looks first, for the ledger, and
// since the search for one that is not there would lock the others for nothing. What
// is dead-lettered after the ledger has counted them stays. One whose removal fails is
// counted: its answer may be all that was lost.
func (s *scope) discardDead(ctx context.Context, letters *servicebus.DeadLetters, number int64, all bool) error {
	if s.flags.DryRun {
		return rehearseDead(ctx, letters, s.lines, number, all)
	}
	d := &readmodel.Decision{Command: "dlq discard"}
	var numbers []int64
	err := chosenDead(ctx, letters, number, all, func(letter servicebus.DeadLetter) error {
		d.Add(named(letter))
		numbers = append(numbers, letter.SequenceNumber)
		return nil
	})
	if err != nil || len(numbers) == 0 {
		return err
	}
	discard := letters.Discard
	if all {
		discard = letters.DiscardMany
	}
	return s.decide(ctx, d, func() error {
		d.About, d.Count = nil, 0
		err := discard(ctx, discardWait, numbers, func(letter servicebus.DeadLetter, remove servicebus.Removal) error {
			if err := s.lines.Encode(wholeLine(letter)); err != nil {
				return err
			}
			d.Add(named(letter))
			if err := remove(); err != nil {
				return fmt.Errorf("it may be removed, and is counted: %w", err)
			}
			return nil
		})
		// That no more comes is not that all have come.
		if err == nil && d.Count < len(numbers) {
			err = fmt.Errorf("%d of %d: %w", len(numbers)-d.Count, len(numbers), errDeadLocked)
		}
		return err
	})
}

// named is a dead letter as the ledger has it: by its event, or by what it is
// called where it is none.
func named(d servicebus.DeadLetter) readmodel.Named {
	if event, placed := contract.Place(d.Message.Message); placed {
		return namedEvent(&event, d.Reason)
	}
	return readmodel.Named{Aggregate: d.SessionID, Event: d.ID, Reason: d.Reason}
}
