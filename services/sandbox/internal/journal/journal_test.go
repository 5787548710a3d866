package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"changerelay/services/sandbox/internal/journal"
)

// open opens dir and returns what was replayed.
func open(t *testing.T, dir string) (*journal.Journal, []string, journal.Recovered) {
	t.Helper()
	var records []string
	j, found, err := journal.Open(dir, func(record []byte) error {
		records = append(records, string(record))
		return nil
	})
	if err != nil {
		t.Fatalf("Open: got error %v, want none", err)
	}
	return j, records, found
}

func closeJournal(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("Close: got error %v, want none", err)
	}
}

func appendAll(t *testing.T, j *journal.Journal, records ...string) {
	t.Helper()
	var position int64
	for _, r := range records {
		position = j.Append([]byte(r))
	}
	if err := j.Commit(position); err != nil {
		t.Fatalf("Commit: got error %v, want none", err)
	}
}

func wantRecords(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("replayed records: got %q, want %q", got, want)
	}
}

func onlyFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("files like %s: got %q, %v, want one", pattern, found, err)
	}
	return found[0]
}

func TestJournal_RecordsComeBackInOrder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	j, records, _ := open(t, dir)
	wantRecords(t, records)
	appendAll(t, j, "a", "b", strings.Repeat("c", 100_000))
	closeJournal(t, j)
	j, records, found := open(t, dir)
	wantRecords(t, records, "a", "b", strings.Repeat("c", 100_000))
	if found.Records != 3 || found.Cut != 0 {
		t.Errorf("Recovered: got %+v, want 3 records and nothing cut", found)
	}
	appendAll(t, j, "d")
	closeJournal(t, j)
	j, records, _ = open(t, dir)
	wantRecords(t, records[3:], "d")
	closeJournal(t, j)
}

func TestJournal_CommittedRecordsAreThereWithoutClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a", "b")
	j.Append([]byte("never committed"))
	copied := copyDir(t, dir) // what a killed process leaves
	closeJournal(t, j)
	again, records, _ := open(t, copied)
	wantRecords(t, records, "a", "b")
	closeJournal(t, again)
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestJournal_ATornTailIsCutAtEveryLength(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "first", "second")
	whole, err := os.Stat(onlyFile(t, dir, "segment-*"))
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "third")
	closeJournal(t, j)
	segment := onlyFile(t, dir, "segment-*")
	full, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for length := whole.Size(); length < int64(len(full)); length++ {
		if err := os.WriteFile(segment, full[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		j, records, found := open(t, dir)
		wantRecords(t, records, "first", "second")
		if found.Cut != length-whole.Size() {
			t.Fatalf("Recovered.Cut of a file of %d bytes: got %d, want %d", length, found.Cut, length-whole.Size())
		}
		appendAll(t, j, "fourth")
		closeJournal(t, j)
		j, records, _ = open(t, dir)
		wantRecords(t, records, "first", "second", "fourth")
		closeJournal(t, j)
	}
}

func TestJournal_ATailOfZeroesIsCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a")
	closeJournal(t, j)
	segment := onlyFile(t, dir, "segment-*")
	content, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segment, append(content, make([]byte, 4096)...), 0o600); err != nil {
		t.Fatal(err)
	}
	j, records, found := open(t, dir)
	wantRecords(t, records, "a")
	if found.Cut != 4096 {
		t.Errorf("Recovered.Cut: got %d, want 4096", found.Cut)
	}
	closeJournal(t, j)
}

func TestJournal_ASegmentTornWhileItWasMadeIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "segment-0000000000000001"), []byte("change"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, records, _ := open(t, dir)
	wantRecords(t, records)
	appendAll(t, j, "a")
	closeJournal(t, j)
	j, records, _ = open(t, dir)
	wantRecords(t, records, "a")
	closeJournal(t, j)
}

func TestJournal_DamageThatIsNoTornTailIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a", "b")
	if _, err := j.Cut(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "c")
	segment, err := j.Cut()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Compact(segment, func(emit func([]byte) error) error { return emit([]byte("abc")) }); err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "d")
	if _, err := j.Cut(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "e")
	closeJournal(t, j)
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"a flipped bit in an earlier segment": func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "segment-0000000000000003")) },
		"an earlier segment cut short":        func(t *testing.T, dir string) { shorten(t, filepath.Join(dir, "segment-0000000000000003")) },
		"an earlier segment missing":          func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "segment-0000000000000003")) },
		"a flipped bit in the snapshot":       func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "snapshot-0000000000000003")) },
		"a snapshot cut short":                func(t *testing.T, dir string) { shorten(t, filepath.Join(dir, "snapshot-0000000000000003")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := copyDir(t, dir)
			spoil(t, copied)
			_, _, err := journal.Open(copied, func([]byte) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "0000000000000003") {
				t.Errorf("Open: got error %v, want one that names the file", err)
			}
		})
	}
}

func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func shorten(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestJournal_CompactReplacesWhatIsBeforeTheCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a", "b")
	segment, err := j.Cut()
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "c") // while the snapshot is written
	if err := j.Compact(segment, func(emit func([]byte) error) error { return emit([]byte("ab")) }); err != nil {
		t.Fatalf("Compact: got error %v, want none", err)
	}
	appendAll(t, j, "d")
	closeJournal(t, j)
	j, records, _ := open(t, dir)
	wantRecords(t, records, "ab", "c", "d")
	closeJournal(t, j)
	onlyFile(t, dir, "segment-*")
	onlyFile(t, dir, "snapshot-*")
}

func TestJournal_ACompactionThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a")
	segment, err := j.Cut()
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err = j.Compact(segment, func(emit func([]byte) error) error {
		if err := emit([]byte("half")); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("Compact: got error %v, want %v", err, broken)
	}
	appendAll(t, j, "b")
	closeJournal(t, j)
	j, records, _ := open(t, dir)
	wantRecords(t, records, "a", "b")
	closeJournal(t, j)
}

func TestJournal_AKillBeforeTheSnapshotIsWholeLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a")
	segment, err := j.Cut()
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "b")
	var killed string
	err = j.Compact(segment, func(emit func([]byte) error) error {
		killed = copyDir(t, dir)
		return emit([]byte("a"))
	})
	if err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	j, records, _ := open(t, killed)
	wantRecords(t, records, "a", "b")
	closeJournal(t, j)
}

func TestJournal_ConcurrentCommitsAreAllKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	const writers, each = 16, 50
	var wg sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				errs <- j.Commit(j.Append([]byte(fmt.Sprintf("%d-%d", w, i))))
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatalf("Commit: got error %v, want none", err)
		}
	}
	closeJournal(t, j)
	j, records, _ := open(t, dir)
	closeJournal(t, j)
	next := map[string]int{}
	for _, r := range records {
		w, i, _ := strings.Cut(r, "-")
		if i != fmt.Sprint(next[w]) {
			t.Fatalf("records of writer %s: got %s, want %d", w, i, next[w])
		}
		next[w]++
	}
	if len(records) != writers*each {
		t.Errorf("records: got %d, want %d", len(records), writers*each)
	}
}

func TestJournal_ASecondOpenIsRefusedUntilClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	if _, _, err := journal.Open(dir, func([]byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second Open: got error %v, want one that says it is in use", err)
	}
	closeJournal(t, j)
	j, _, _ = open(t, dir)
	closeJournal(t, j)
}

func TestJournal_NothingIsCommittedAfterAFailure(t *testing.T) {
	t.Parallel()
	j, _, _ := open(t, t.TempDir())
	position := j.Append(bytes.Repeat([]byte("x"), journal.MaxRecord+1))
	if err := j.Commit(position); err == nil {
		t.Error("Commit of a record that is too large: got no error")
	}
	if err := j.Commit(j.Append([]byte("fine"))); err == nil {
		t.Error("Commit after a failure: got no error")
	}
	if err := j.Close(); err != nil {
		t.Errorf("Close: got error %v, want none", err)
	}
	if err := j.Commit(j.Append([]byte("late"))); err == nil {
		t.Error("Commit after Close: got no error")
	}
}

func TestJournal_ReplayEndsAtItsError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	appendAll(t, j, "a", "b")
	closeJournal(t, j)
	refused := errors.New("refused")
	_, _, err := journal.Open(dir, func([]byte) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("Open: got error %v, want %v", err, refused)
	}
	j, records, _ := open(t, dir) // the lock was given back
	wantRecords(t, records, "a", "b")
	closeJournal(t, j)
}

func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	j, _, err := journal.Open(dir, func([]byte) error { return nil })
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(j.Commit(j.Append([]byte("record"))), j.Close()); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "segment-0000000000000001"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-3])
	f.Add([]byte("something else entirely, and longer"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "segment-0000000000000001"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		var before []string
		j, _, err := journal.Open(dir, func(r []byte) error {
			before = append(before, string(r))
			return nil
		})
		if err != nil {
			return
		}
		appendAll(t, j, "more")
		closeJournal(t, j)
		j, after, _ := open(t, dir)
		wantRecords(t, after, append(before, "more")...)
		closeJournal(t, j)
	})
}
