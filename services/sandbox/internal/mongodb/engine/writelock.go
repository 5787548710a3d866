package engine

import "errors"

// writeLock keeps statements from writing until it is taken back as often as it
// was taken. Engine.mu guards it.
type writeLock struct {
	times int
	// free is closed when nobody has it any more.
	free chan struct{}
}

// locked says that a statement has met the lock of all writes.
type locked struct{ free <-chan struct{} }

func (l *locked) Error() string { return "waits until writes are let in again" }

// LockWrites lets no statement write any more when it returns, and returns how
// often it has been called since nobody kept writes out.
func (e *Engine) LockWrites() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writeLock.times == 0 {
		e.writeLock.free = make(chan struct{})
	}
	e.writeLock.times++
	return e.writeLock.times
}

// ErrWritesNotLocked is the answer to who takes back a lock that is not there.
var ErrWritesNotLocked = errors.New("writes are not locked")

// UnlockWrites takes one LockWrites back, and returns how many are left.
func (e *Engine) UnlockWrites() (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writeLock.times == 0 {
		return 0, ErrWritesNotLocked
	}
	if e.writeLock.times--; e.writeLock.times == 0 {
		close(e.writeLock.free)
	}
	return e.writeLock.times, nil
}

// WritesLocked reports that no statement may write.
func (e *Engine) WritesLocked() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writeLock.times > 0
}
