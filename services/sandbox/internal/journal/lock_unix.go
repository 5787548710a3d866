//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"
)

// lockDir takes the lock file, or says that another process has it. The kernel
// lets go of it when the process ends, however it ends.
func lockDir(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("it is in use by another process")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
