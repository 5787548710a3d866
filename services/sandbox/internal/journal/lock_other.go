//go:build !unix

package journal

import "os"

// lockDir opens the lock file; there is no lock that ends with the process.
func lockDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
