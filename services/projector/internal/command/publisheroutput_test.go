package command

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// Whoever reads may be slower than the command line prints: what it has printed is read after
// its end, however late, and before the output is over.
func TestOutput_IsReadAfterTheEndOfTheCommandLine(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() }) // what is left behind has it open
	o := &output{from: from, ended: make(chan struct{})}
	if _, err := to.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	if err := from.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	close(o.ended)
	p := make([]byte, 16)
	if n, err := o.Read(p); err != nil || string(p[:n]) != "end" {
		t.Errorf("what is printed: got %q and %v", p[:n], err)
	}
	if n, err := o.Read(p); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("where no more comes: got %q and %v, want the end", p[:n], err)
	}
	if err := o.close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
