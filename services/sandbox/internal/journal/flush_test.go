package journal

import (
	"errors"
	"testing"
)

// brokenStorage fails where it is told to.
type brokenStorage struct {
	storage
	write, sync error
}

func (s *brokenStorage) Write(p []byte) (int, error) {
	if s.write != nil {
		return 0, s.write
	}
	return s.storage.Write(p)
}

func (s *brokenStorage) Sync() error {
	if s.sync != nil {
		return s.sync
	}
	return s.storage.Sync()
}

func TestFlush_ACommitThatStorageRefusesFailsForGood(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk is full")
	for name, fault := range map[string]brokenStorage{
		"the write fails": {write: broken},
		"the fsync fails": {sync: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, _, err := Open(t.TempDir(), func([]byte) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			fault.storage, j.file = j.file, &fault
			if err := j.Commit(j.Append([]byte("a"))); !errors.Is(err, broken) {
				t.Errorf("Commit: got error %v, want %v", err, broken)
			}
			fault.write, fault.sync = nil, nil // what the kernel has kept is unknown
			if err := j.Commit(j.Append([]byte("b"))); !errors.Is(err, broken) {
				t.Errorf("Commit after a failure: got error %v, want %v", err, broken)
			}
			if _, err := j.Cut(); !errors.Is(err, broken) {
				t.Errorf("Cut after a failure: got error %v, want %v", err, broken)
			}
			if err := j.Close(); !errors.Is(err, broken) {
				t.Errorf("Close: got error %v, want %v", err, broken)
			}
		})
	}
}
