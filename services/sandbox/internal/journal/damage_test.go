package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/journal"
)

// smallDirectory has a snapshot, a whole segment and one that is being written, and the records to be read from them.
func smallDirectory(t *testing.T) (dir string, records []string) {
	t.Helper()
	dir = t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a", "b")
	segment, err := j.Cut()
	must(t, err)
	must(t, j.Compact(segment, func(emit func([]byte) error) error {
		return errors.Join(emit([]byte("one")), emit([]byte("two")))
	}))
	appendAll(t, j, "three", "four")
	_, err = j.Cut()
	must(t, err)
	appendAll(t, j, "five", "six")
	closeJournal(t, j)
	return dir, []string{"one", "two", "three", "four", "five", "six"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamage_OfAnyByteIsFoundAndItsPlaceNamed(t *testing.T) {
	t.Parallel()
	dir, want := smallDirectory(t)
	files, err := filepath.Glob(filepath.Join(dir, "*-*"))
	must(t, err)
	files = append(files, filepath.Join(dir, "head"))
	bytesFlipped := 0
	for _, path := range files {
		good, err := os.ReadFile(path)
		must(t, err)
		for at := range good {
			for _, bit := range []byte{0x01, 0x80, 0xff} {
				bad := bytes.Clone(good)
				bad[at] ^= bit
				must(t, os.WriteFile(path, bad, 0o600))
				var got []string
				j, _, err := journal.Open(dir, func(r []byte) error { got = append(got, string(r)); return nil })
				switch {
				case err == nil:
					closeJournal(t, j)
					if !slices.Equal(got, want) {
						t.Fatalf("%s, byte %d: got %q without an error, want all of %q", path, at, got, want)
					}
				case !strings.Contains(err.Error(), path+" at "):
					t.Fatalf("%s, byte %d: got error %q, want one that names file and offset", path, at, err)
				}
			}
			bytesFlipped++
		}
		must(t, os.WriteFile(path, good, 0o600))
	}
	if bytesFlipped < 100 {
		t.Errorf("got %d bytes flipped, want those of all files", bytesFlipped)
	}
}

func TestDamage_AFileThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	whole, _ := smallDirectory(t)
	for _, name := range []string{"head", "snapshot-0000000000000002", "segment-0000000000000002", "segment-0000000000000003"} {
		dir := copyDir(t, whole)
		remove(t, filepath.Join(dir, name))
		_, _, err := journal.Open(dir, func([]byte) error { return nil })
		if name == "snapshot-0000000000000002" {
			name = "segment-0000000000000001" // without a snapshot all begins there
		}
		if err == nil || !strings.Contains(err.Error(), name+" is missing") {
			t.Errorf("%s: got error %v, want that it is missing", name, err)
		}
	}
}

func TestDamage_TheOnlySegmentIsMissedToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a")
	closeJournal(t, j)
	segment := onlyFile(t, dir, "segment-*")
	must(t, os.Truncate(segment, 3))
	if _, _, err := journal.Open(dir, func([]byte) error { return nil }); err == nil {
		t.Error("got no error from a segment that was cut within its first line, want one")
	}
	remove(t, segment)
	if _, _, err := journal.Open(dir, func([]byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("got error %v, want that the segment is missing", err)
	}
}

// machine is a state machine that refuses one record.
func machine(refuses string) func() (journal.Take, error) {
	return func() (journal.Take, error) {
		return func(r []byte, _ bool) ([]byte, error) {
			if string(r) == refuses {
				return nil, errors.New("it makes no sense now")
			}
			return r, nil
		}, nil
	}
}

func TestSalvage_KeepsWhatCanBeReadAndSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	dir, _ := smallDirectory(t)
	spoiled := filepath.Join(dir, "segment-0000000000000002")
	content, err := os.ReadFile(spoiled)
	must(t, err)
	content[bytes.Index(content, []byte("three"))] ^= 1
	must(t, os.WriteFile(spoiled, content, 0o600))

	done, err := journal.Salvage(dir, machine("five"))
	must(t, err)
	if done.Records != 4 || len(done.Lost) != 2 {
		t.Fatalf("got %+v, want 4 records kept and 2 places lost", done)
	}
	if l := done.Lost[0]; l.File != spoiled || l.Offset != int64(len("change-relay journal 2\n")) || l.Bytes != 12+int64(len("three")) {
		t.Errorf("got %+v lost, want the frame of the damaged record", l)
	}
	if l := done.Lost[1]; !strings.Contains(l.Why, "it makes no sense now") {
		t.Errorf("got %+v lost, want why the record was refused", l)
	}
	j, records, _ := open(t, dir)
	wantRecords(t, records, "one", "two", "four", "six")
	closeJournal(t, j)
	if kept, err := os.ReadFile(filepath.Join(done.Backup, "segment-0000000000000002")); err != nil || !bytes.Equal(kept, content) {
		t.Errorf("got %v and %d bytes from the backup, want the damaged file", err, len(kept))
	}
}

// A record that is refused is no reason to begin from the start: each of many would be.
func TestSalvage_OfferedManyThatAreRefusedReadsTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	const records = 200
	for i := range records {
		appendAll(t, j, fmt.Sprint(i))
	}
	closeJournal(t, j)
	taken := 0
	done, err := journal.Salvage(dir, func() (journal.Take, error) {
		return func(r []byte, _ bool) ([]byte, error) {
			if taken++; len(r) == 3 {
				return nil, errors.New("it makes no sense now")
			}
			return r, nil
		}, nil
	})
	must(t, err)
	if done.Records != 100 || len(done.Lost) != 100 {
		t.Errorf("got %d records kept and %d lost, want 100 of each", done.Records, len(done.Lost))
	}
	if taken > 2*records {
		t.Errorf("got %d records read, want each of %d twice at most", taken, records)
	}
}

// What stands behind a loss is said to do so, also when it is read again.
func TestSalvage_TellsTheMachineWhereSomethingIsLost(t *testing.T) {
	t.Parallel()
	dir, _ := smallDirectory(t)
	spoiled := filepath.Join(dir, "segment-0000000000000002")
	content, err := os.ReadFile(spoiled)
	must(t, err)
	content[bytes.Index(content, []byte("three"))] ^= 1
	must(t, os.WriteFile(spoiled, content, 0o600))
	var heard []string
	_, err = journal.Salvage(dir, func() (journal.Take, error) {
		heard = nil
		return func(r []byte, behind bool) ([]byte, error) {
			if behind {
				heard = append(heard, string(r))
			}
			if string(r) == "five" {
				return nil, errors.New("it makes no sense now")
			}
			return r, nil
		}, nil
	})
	must(t, err)
	if want := []string{"four", "six"}; !slices.Equal(heard, want) {
		t.Errorf("got %q behind a loss, want %q", heard, want)
	}
}

func TestSalvage_LeavesAGoodDirectoryAsItIs(t *testing.T) {
	t.Parallel()
	dir, want := smallDirectory(t)
	done, err := journal.Salvage(dir, machine(""))
	must(t, err)
	if done.Records != len(want) || len(done.Lost) != 0 || done.Backup != "" {
		t.Errorf("got %+v, want nothing lost and no backup", done)
	}
}

func TestSalvage_OfAMissingSegmentKeepsTheOthers(t *testing.T) {
	t.Parallel()
	dir, _ := smallDirectory(t)
	remove(t, filepath.Join(dir, "segment-0000000000000003"))
	done, err := journal.Salvage(dir, machine(""))
	must(t, err)
	if len(done.Lost) != 1 || !strings.Contains(done.Lost[0].Why, "missing") {
		t.Errorf("got %+v lost, want the missing segment", done.Lost)
	}
	j, records, _ := open(t, dir)
	wantRecords(t, records, "one", "two", "three", "four")
	closeJournal(t, j)
}

// A salvage that ends between its two renames has moved the old directory away and put none in its place.
func TestSalvage_ThatWasKilledInBetweenIsFinished(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(dir string) error{
		"by a start": func(string) error { return nil },
		"by salvage": func(dir string) error { _, err := journal.Salvage(dir, machine("")); return err },
	} {
		dir, _ := smallDirectory(t)
		remove(t, filepath.Join(dir, "segment-0000000000000003"))
		_, err := journal.Salvage(dir, machine(""))
		must(t, err)
		must(t, os.Rename(dir, dir+".salvaged"))
		if err := next(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		j, records, _ := open(t, dir)
		wantRecords(t, records, "one", "two", "three", "four")
		closeJournal(t, j)
	}
}
