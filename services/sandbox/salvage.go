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
	for name, check := range map[string]func(journal.Feed) error{mongoDir: checkMongoDB, serviceBusDir: checkServiceBus} {
		dir := filepath.Join(dataDir, name)
		done, err := journal.Salvage(dir, check)
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

func checkMongoDB(feed journal.Feed) error {
	_, err := engine.Recover(engine.Config{}, func(replay func([]byte) error) (engine.Journal, error) {
		return nil, feed(replay)
	})
	return err
}

func checkServiceBus(feed journal.Feed) error {
	b, err := broker.New(broker.Config{})
	if err != nil {
		return err
	}
	return feed(b.Restore)
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
