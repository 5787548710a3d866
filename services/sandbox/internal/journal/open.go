package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	segmentKind  = "segment"
	snapshotKind = "snapshot"
)

// Recovered says what Open found.
type Recovered struct {
	Records int64 // replayed
	Cut     int64 // bytes of a torn tail that were dropped
}

// Open makes the directory if it is not there, replays what it holds, and
// returns a journal to append to. replay must not keep the record. An error of
// replay ends it, and is damage.
func Open(dir string, replay func(record []byte) error) (*Journal, Recovered, error) {
	if err := finishSalvage(dir); err != nil {
		return nil, Recovered{}, fmt.Errorf("finish a salvage of %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Recovered{}, fmt.Errorf("make the journal's directory: %w", err)
	}
	lock, err := lockDir(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, Recovered{}, fmt.Errorf("lock %s: %w", dir, err)
	}
	j := &Journal{dir: dir, lock: lock}
	j.settled = sync.NewCond(&j.mu)
	found, err := j.recover(replay)
	if err != nil {
		return nil, Recovered{}, errors.Join(err, lock.Close())
	}
	return j, found, nil
}

func (j *Journal) recover(replay func([]byte) error) (Recovered, error) {
	var found Recovered
	count := func(record []byte) error {
		found.Records++
		if err := replay(record); err != nil {
			return &refusedRecord{err}
		}
		return nil
	}
	head, err := j.readHead()
	if err != nil {
		return found, err
	}
	snapshots, segments, err := j.list()
	if err != nil {
		return found, err
	}
	first := uint64(1)
	if len(snapshots) > 0 {
		first = snapshots[len(snapshots)-1]
		if err := j.replaySnapshot(first, count); err != nil {
			return found, err
		}
	}
	segments = slices.DeleteFunc(segments, func(n uint64) bool { return n < first })
	for i, n := range segments {
		if n != first+uint64(i) {
			return found, missing(j.path(segmentKind, first+uint64(i)))
		}
		cut, err := j.replaySegment(n, i == len(segments)-1, n > head, count)
		if err != nil {
			return found, err
		}
		found.Cut += cut
	}
	if next := first + uint64(len(segments)); next <= head || len(segments) == 0 && len(snapshots) > 0 {
		return found, missing(j.path(segmentKind, next))
	}
	if head == 0 && found.Records > 0 {
		return found, missing(j.headPath())
	}
	if j.segment = first; len(segments) == 0 {
		return found, j.create()
	}
	j.segment = segments[len(segments)-1]
	if err := j.reopen(); err != nil || j.segment == head {
		return found, err
	}
	return found, j.writeHead()
}

// missing is the error for a file that was there.
func missing(path string) error { return &lostFile{path} }

// lostFile is a kind of damage.
type lostFile struct{ path string }

func (e *lostFile) Error() string { return e.path + " is missing" }
func (e *lostFile) Unwrap() error { return ErrDamaged }

// refusedRecord is a whole record that replay does not take: a kind of damage.
type refusedRecord struct{ why error }

func (e *refusedRecord) Error() string   { return e.why.Error() }
func (e *refusedRecord) Unwrap() []error { return []error{ErrDamaged, e.why} }

// list returns the numbers of snapshots and segments, in order, and removes
// what an interrupted compaction has left.
func (j *Journal) list() (snapshots, segments []uint64, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		kind, digits, ok := strings.Cut(e.Name(), "-")
		if strings.HasSuffix(e.Name(), temporary) {
			if err := os.Remove(filepath.Join(j.dir, e.Name())); err != nil {
				return nil, nil, err
			}
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		switch {
		case !ok || err != nil:
		case kind == snapshotKind:
			snapshots = append(snapshots, n)
		case kind == segmentKind:
			segments = append(segments, n)
		}
	}
	slices.Sort(snapshots)
	slices.Sort(segments)
	return snapshots, segments, nil
}

// replaySnapshot insists on the whole file: it was renamed when it was whole.
func (j *Journal) replaySnapshot(n uint64, replay func([]byte) error) error {
	file, err := os.Open(j.path(snapshotKind, n))
	if err != nil {
		return err
	}
	defer file.Close()
	frames, err := newFrameReader(file)
	for err == nil {
		var record []byte
		record, err = frames.next()
		if err == nil && len(record) == 0 {
			return nil
		}
		if err == nil {
			err = replay(record)
		}
	}
	return fmt.Errorf("replay %s at %d: %w", file.Name(), frames.good, err)
}

// replaySegment cuts a torn tail off the last segment. Its first line may be torn
// only where the segment is newer than the head.
func (j *Journal) replaySegment(n uint64, last, newer bool, replay func([]byte) error) (cut int64, err error) {
	file, err := os.OpenFile(j.path(segmentKind, n), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	frames, err := newFrameReader(file)
	for err == nil {
		var record []byte
		record, err = frames.next()
		if err == nil && len(record) == 0 {
			err = ErrDamaged // only a snapshot has an empty frame
		}
		if err == nil {
			err = replay(record)
		}
	}
	j.logged += frames.good
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil
	case errors.Is(err, errTorn) && last && (frames.good > 0 || newer):
		info, err := file.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size() - frames.good, errors.Join(file.Truncate(frames.good), file.Sync())
	}
	return 0, fmt.Errorf("replay %s at %d: %w", file.Name(), frames.good, err)
}

// create begins the segment of the current number.
func (j *Journal) create() error {
	file, err := os.OpenFile(j.path(segmentKind, j.segment), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(magic); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), j.syncDir(), j.writeHead()); err != nil {
		return errors.Join(err, file.Close())
	}
	j.file = file
	return nil
}

// reopen goes on at the end of the segment of the current number.
func (j *Journal) reopen() error {
	file, err := os.OpenFile(j.path(segmentKind, j.segment), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if info.Size() < int64(len(magic)) { // torn while it was made
		return errors.Join(file.Close(), j.create())
	}
	j.file = file
	return nil
}
