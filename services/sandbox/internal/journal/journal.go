package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Journal is an open log. Its methods are safe for concurrent use.
type Journal struct {
	dir  string
	lock *os.File

	mu       sync.Mutex
	settled  *sync.Cond // a flush has ended
	segment  uint64     // number of file
	file     storage
	pending  []byte // appended, not yet written
	spare    []byte // pending's other half
	appended int64  // position behind the last appended record
	durable  int64
	logged   int64 // bytes in the segments since the snapshot
	flushing bool
	err      error // the first failure; final
}

// storage is the part of a file that a segment is written by.
type storage interface {
	Name() string
	Write(p []byte) (int, error)
	Sync() error
	Close() error
}

// Append adds a record, which is copied, and returns the position to commit.
// It never waits for storage. The order of calls is the order of the log.
func (j *Journal) Append(record []byte) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(record) > MaxRecord || len(record) == 0 {
		j.fail(fmt.Errorf("a record of %d bytes, where 1 to %d are allowed", len(record), MaxRecord))
	}
	if j.err != nil {
		return j.appended + 1 // cannot be committed
	}
	before := len(j.pending)
	j.pending = appendFrame(j.pending, record)
	j.appended += int64(len(j.pending) - before)
	return j.appended
}

// Commit waits until everything up to position is on storage.
func (j *Journal) Commit(position int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.commit(position)
}

func (j *Journal) commit(position int64) error {
	for j.durable < position && j.err == nil {
		if j.flushing {
			j.settled.Wait()
			continue
		}
		j.flush()
	}
	if j.durable < position {
		return j.err
	}
	return nil
}

// flush writes what is pending, for everyone who waits. It is called with mu
// held, and lets go of it meanwhile.
func (j *Journal) flush() {
	batch, end, file := j.pending, j.appended, j.file
	j.pending, j.spare = j.spare[:0], nil
	j.flushing = true
	j.mu.Unlock()

	_, err := file.Write(batch)
	if err == nil {
		err = file.Sync()
	}

	j.mu.Lock()
	j.flushing = false
	j.spare = batch[:0]
	if err != nil {
		j.fail(fmt.Errorf("write %s: %w", file.Name(), err))
	} else {
		j.durable = end
		j.logged += int64(len(batch))
	}
	j.settled.Broadcast()
}

func (j *Journal) fail(err error) {
	if j.err == nil {
		j.err = err
	}
	j.settled.Broadcast()
}

// Logged is the size in bytes of the log since the last snapshot: when it
// outgrows the state, it is time to compact.
func (j *Journal) Logged() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.logged
}

// errClosed is what a closed journal answers.
var errClosed = errors.New("the journal is closed")

// Close commits what was appended and gives the directory free.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.commit(j.appended)
	for j.flushing {
		j.settled.Wait()
	}
	j.fail(errClosed)
	return errors.Join(err, j.file.Close(), j.lock.Close())
}

func (j *Journal) path(kind string, number uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%s-%016d", kind, number))
}

// syncDir makes names in the directory durable.
func (j *Journal) syncDir() error {
	d, err := os.Open(j.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
