package command

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// outliving is how long a command line that has ended is waited for to print more: what it
// has begun may outlive it, and keep its output open.
const outliving = time.Second

// output is what a command line prints. Its end is reached where nobody has it open any more,
// or nothing comes for a time after the command line has ended.
type output struct {
	from  *os.File
	ended chan struct{}
	err   error // how the command line has ended; once it has
}

// begin runs a command line of which the output is read. Its context ends it.
func begin(run *exec.Cmd) (*output, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	run.Stdout, run.WaitDelay = to, outliving
	err = run.Start()
	_ = to.Close() // it has its own
	if err != nil {
		_ = from.Close() // nothing was read
		return nil, err
	}
	o := &output{from: from, ended: make(chan struct{})}
	go func() {
		o.err = run.Wait()
		_ = from.SetReadDeadline(time.Now()) // a read that is under way begins anew
		close(o.ended)
	}()
	return o, nil
}

// Read implements io.Reader.
func (o *output) Read(p []byte) (int, error) {
	for {
		over := o.over()
		if over {
			_ = o.from.SetReadDeadline(time.Now().Add(outliving)) // a file without deadlines has its end alone
		}
		n, err := o.from.Read(p)
		switch late := errors.Is(err, os.ErrDeadlineExceeded); {
		case late && over:
			return n, io.EOF
		case !late:
			return n, err
		}
	}
}

// over tells whether the command line has ended.
func (o *output) over() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// close waits for the end of the command line, and returns its failure.
func (o *output) close() error {
	<-o.ended
	_ = o.from.Close() // it was only read
	if leftBehind(o.err) {
		return nil
	}
	return o.err
}
