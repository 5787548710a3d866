package journal

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

const temporary = ".tmp"

// Cut divides the log: records appended before it are on storage and in earlier
// segments, later ones go into a new segment. Call it with the lock held under
// which records are appended, and take a picture of the state there: that is
// what Compact writes.
func (j *Journal) Cut() (segment uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.commit(j.appended); err != nil {
		return 0, err
	}
	for j.flushing { // an earlier leader may still hold the file
		j.settled.Wait()
	}
	old := j.file
	j.segment++
	if err := j.create(); err != nil {
		j.fail(fmt.Errorf("begin a segment: %w", err))
		return 0, j.err
	}
	j.logged = 0
	return j.segment, old.Close()
}

// Compact replaces everything before segment, which Cut returned, by the
// records that snapshot emits. The log can be appended to meanwhile. When it
// fails the old files are still there and good.
func (j *Journal) Compact(segment uint64, snapshot func(emit func(record []byte) error) error) error {
	path := j.path(snapshotKind, segment)
	if err := writeSnapshot(path+temporary, snapshot); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path+temporary))
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	if err := j.syncDir(); err != nil {
		return err
	}
	return j.removeBefore(segment)
}

func writeSnapshot(path string, snapshot func(emit func([]byte) error) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	var frame []byte
	write := func(record []byte) error {
		frame = appendFrame(frame[:0], record)
		_, err := out.Write(frame)
		return err
	}
	_, err = out.WriteString(magic)
	if err == nil {
		err = snapshot(func(record []byte) error {
			if len(record) == 0 || len(record) > MaxRecord {
				return fmt.Errorf("a record of %d bytes, where 1 to %d are allowed", len(record), MaxRecord)
			}
			return write(record)
		})
	}
	if err == nil {
		err = write(nil) // the end
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (j *Journal) removeBefore(segment uint64) error {
	snapshots, segments, err := j.list()
	if err != nil {
		return err
	}
	for _, n := range snapshots {
		if n < segment {
			err = errors.Join(err, os.Remove(j.path(snapshotKind, n)))
		}
	}
	for _, n := range segments {
		if n < segment {
			err = errors.Join(err, os.Remove(j.path(segmentKind, n)))
		}
	}
	return err
}
