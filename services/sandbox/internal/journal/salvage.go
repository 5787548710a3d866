package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Lost is a part of a damaged directory that Salvage could not keep.
type Lost struct {
	File   string
	Offset int64
	// Bytes are how many could not be read from there on; 0 where that is not known.
	Bytes int64
	Why   string
}

// Salvaged says what Salvage has done.
type Salvaged struct {
	// Records are how many were kept.
	Records int
	Lost    []Lost
	// Backup is where the directory is now, as it was found.
	Backup string
}

// Salvage makes a good directory of a damaged one, with every record that can be
// read and that the state machine takes; the old one stays as a backup. check
// feeds the records to an empty state machine and returns the error of feed; it
// is called again after each record that is refused. Where nothing is lost the
// directory stays as it is.
func Salvage(dir string, check func(feed Feed) error) (Salvaged, error) {
	if err := finishSalvage(dir); err != nil {
		return Salvaged{}, fmt.Errorf("finish an earlier salvage: %w", err)
	}
	if _, err := os.Stat(dir); err != nil {
		return Salvaged{}, err
	}
	lock, err := lockDir(filepath.Join(dir, "lock"))
	if err != nil {
		return Salvaged{}, fmt.Errorf("lock %s: %w", dir, err)
	}
	defer lock.Close()
	s := &salvage{j: &Journal{dir: dir}}
	if err := s.read(); err != nil {
		return Salvaged{}, err
	}
	if err := s.refuse(check); err != nil {
		return Salvaged{}, err
	}
	out := Salvaged{Records: len(s.kept), Lost: s.lost}
	if len(s.lost) == 0 {
		return out, nil
	}
	out.Backup, err = s.replace()
	return out, err
}

// Feed replays records until one is refused.
type Feed func(replay func(record []byte) error) error

type salvage struct {
	j    *Journal
	kept []found
	lost []Lost
}

// found is a record and where it was.
type found struct {
	file   string
	offset int64
	record []byte
}

func (s *salvage) lose(file string, offset, bytes int64, why error) {
	s.lost = append(s.lost, Lost{file, offset, bytes, why.Error()})
}

// read takes all records that are whole, in order.
func (s *salvage) read() error {
	head, err := s.j.readHead()
	if err != nil {
		s.lose(s.j.headPath(), 0, 0, err)
	}
	snapshots, segments, err := s.j.list()
	if err != nil {
		return err
	}
	first := uint64(1)
	if len(snapshots) > 0 {
		first = snapshots[len(snapshots)-1]
		if err := s.file(s.j.path(snapshotKind, first), true); err != nil {
			return err
		}
	}
	last := max(head, first)
	if len(segments) > 0 {
		last = max(last, segments[len(segments)-1])
	}
	for n := first; n <= last; n++ {
		if !slices.Contains(segments, n) {
			s.lose(s.j.path(segmentKind, n), 0, 0, errors.New("the file is missing"))
			continue
		}
		if err := s.file(s.j.path(segmentKind, n), false); err != nil {
			return err
		}
	}
	if head == 0 && len(s.lost) == 0 && len(s.kept) > 0 {
		s.lose(s.j.headPath(), 0, 0, errors.New("the file is missing"))
	}
	return nil
}

// file takes the records of a file, and looks for the next whole one behind each
// damaged one.
func (s *salvage) file(path string, snapshot bool) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := min(len(magic), len(content))
	if string(content[:at]) != magic {
		s.lose(path, 0, int64(at), ErrDamaged)
	}
	for at < len(content) {
		record, size := frameAt(content[at:])
		if size > 0 && len(record) == 0 && snapshot {
			return nil
		}
		if size > 0 && len(record) > 0 {
			s.kept = append(s.kept, found{path, int64(at), record})
			at += size
			continue
		}
		from := at
		for at++; at < len(content); at++ {
			if record, size := frameAt(content[at:]); size > 0 && (len(record) > 0 || snapshot) {
				break
			}
		}
		s.lose(path, int64(from), int64(at-from), ErrDamaged)
	}
	if snapshot {
		s.lose(path, int64(len(content)), 0, io.ErrUnexpectedEOF)
	}
	return nil
}

// refuse leaves out the records that the state machine does not take without
// those that are lost.
func (s *salvage) refuse(check func(feed Feed) error) error {
	for {
		refused := -1
		err := check(func(replay func([]byte) error) error {
			for i, r := range s.kept {
				if err := replay(r.record); err != nil {
					refused = i
					return err
				}
			}
			return nil
		})
		if err == nil || refused < 0 {
			return err
		}
		r := s.kept[refused]
		s.lose(r.file, r.offset, int64(frameHeader+len(r.record)), err)
		s.kept = slices.Delete(s.kept, refused, refused+1)
	}
}

// replace writes what was kept into a new directory and puts that in the place
// of the old one.
func (s *salvage) replace() (backup string, err error) {
	fresh, whole := s.j.dir+".salvaging", s.j.dir+salvaged
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(whole)); err != nil {
		return "", err
	}
	j, _, err := Open(fresh, func([]byte) error { return nil })
	if err != nil {
		return "", err
	}
	for _, r := range s.kept {
		j.Append(r.record)
	}
	if err := j.Close(); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, whole); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		backup = fmt.Sprintf("%s.damaged-%d", s.j.dir, n)
		if _, err := os.Stat(backup); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err := os.Rename(s.j.dir, backup); err != nil {
		return "", err
	}
	return backup, finishSalvage(s.j.dir)
}

// salvaged ends the name of the directory that takes the place of a damaged one,
// when it is whole.
const salvaged = ".salvaged"

// finishSalvage puts what a salvage has kept in the place of the old directory,
// where that is gone already: the process may have ended in between.
func finishSalvage(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := os.Rename(dir+salvaged, dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // there was none
	}
	if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
