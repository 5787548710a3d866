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
// read and that the state machine takes; the old one stays as a backup. machine
// returns an empty state machine. Where nothing is lost the directory stays as it
// is.
func Salvage(dir string, machine func() (Take, error)) (Salvaged, error) {
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
	for refused := true; refused; {
		take, err := machine()
		if err != nil {
			return Salvaged{}, err
		}
		refused = s.refuse(take)
	}
	out := Salvaged{Records: len(s.kept), Lost: s.lost}
	if len(s.lost) == 0 {
		return out, nil
	}
	out.Backup, err = s.replace()
	return out, err
}

// Take is a state machine that replays records. behind tells one with a loss
// between it and the record before. kept is what of the record can be kept, and
// why says what was lost of it: all, where kept is empty. The machine goes on after
// a record that it has refused, of which it may have done a part.
type Take func(record []byte, behind bool) (kept []byte, why error)

type salvage struct {
	j    *Journal
	kept []found
	lost []Lost
	// behind tells that something is lost after the last record kept.
	behind bool
}

// found is a record, where it was, and whether something is lost before it.
type found struct {
	file   string
	offset int64
	record []byte
	behind bool
}

func (s *salvage) lose(file string, offset, bytes int64, why error) {
	s.lost = append(s.lost, Lost{file, offset, bytes, why.Error()})
	s.behind = true
}

func (s *salvage) keep(r found) {
	r.behind = r.behind || s.behind
	s.kept = append(s.kept, r)
	s.behind = false
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
			s.keep(found{file: path, offset: int64(at), record: record})
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
// those that are lost. It reports whether there was one: the machine may have done
// a part of it, so that what came after is to be tried again, by a new machine.
// What only such a part stood in the way of is left out as well.
func (s *salvage) refuse(take Take) (refused bool) {
	offered := s.kept
	s.kept, s.behind = make([]found, 0, len(offered)), false
	for _, r := range offered {
		kept, why := take(r.record, r.behind || s.behind)
		if why != nil {
			s.lose(r.file, r.offset, int64(frameHeader+len(r.record)-len(kept)), why)
		}
		if len(kept) == 0 {
			refused = true
			continue
		}
		r.record = kept
		s.keep(r)
	}
	return refused
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
