package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// The head names the segment that is being written, so that a segment which has
// gone is missed: the last one, too. It is written when the segment is on
// storage and before anything in it is acknowledged, so that there may be one
// more segment than it says, and never one less.

func (j *Journal) headPath() string { return filepath.Join(j.dir, "head") }

func headText(segment uint64) []byte {
	digits := fmt.Sprintf("%016d", segment)
	return fmt.Appendf(nil, "%s %08x\n", digits, crc32.Checksum([]byte(digits), castagnoli))
}

// writeHead replaces the head, whole.
func (j *Journal) writeHead() error {
	file, err := os.OpenFile(j.headPath()+temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(headText(j.segment))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(j.headPath()+temporary, j.headPath()); err != nil {
		return err
	}
	return j.syncDir()
}

// readHead returns the number of the segment that was being written, 0 where
// none ever was.
func (j *Journal) readHead() (uint64, error) {
	text, err := os.ReadFile(j.headPath())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var segment uint64
	if _, err := fmt.Sscanf(string(text), "%d", &segment); err != nil || string(headText(segment)) != string(text) {
		return 0, fmt.Errorf("%s at 0: %w", j.headPath(), ErrDamaged)
	}
	return segment, nil
}
