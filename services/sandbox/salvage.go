package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"changerelay/services/sandbox/internal/journal"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/servicebus/broker"
)

// The directories below a data directory, one for each side.
const (
	mongoDir      = "mongodb"
	serviceBusDir = "servicebus"
)

// Salvage makes a good data directory of a damaged one, with what can be read,
// and prints what is lost. What was there stays beside it as a backup. No
// sandbox may run on the directory.
func Salvage(dataDir string, out io.Writer) error {
	var errs []error
	found := false
	for name, machine := range map[string]func() (journal.Take, error){mongoDir: mongoDBMachine, serviceBusDir: serviceBusMachine} {
		dir := filepath.Join(dataDir, name)
		done, err := journal.Salvage(dir, machine)
		if errors.Is(err, os.ErrNotExist) && done.Backup == "" {
			continue
		}
		found = true
		if err != nil {
			errs = append(errs, fmt.Errorf("salvage %s: %w", dir, err))
			continue
		}
		errs = append(errs, report(out, dir, done))
	}
	if !found {
		errs = append(errs, fmt.Errorf("there is no data of a sandbox in %s: %w", dataDir, os.ErrNotExist))
	}
	return errors.Join(errs...)
}

func mongoDBMachine() (journal.Take, error) { return engine.Salvager(), nil }

func serviceBusMachine() (journal.Take, error) {
	b, err := broker.New(broker.Config{})
	if err != nil {
		return nil, err
	}
	return func(record []byte, _ bool) ([]byte, error) {
		if err := b.Restore(record); err != nil {
			return nil, err
		}
		return record, nil
	}, nil
}

func report(out io.Writer, dir string, done journal.Salvaged) error {
	if len(done.Lost) == 0 {
		_, err := fmt.Fprintf(out, "%s: nothing is lost, %d records\n", dir, done.Records)
		return err
	}
	for _, lost := range done.Lost {
		if _, err := fmt.Fprintf(out, "lost: %s at %d, %d bytes: %s\n", lost.File, lost.Offset, lost.Bytes, lost.Why); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s: %d records kept; what was there is in %s\n", dir, done.Records, done.Backup)
	return err
}
