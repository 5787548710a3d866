package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/verify"
)

// publishedEvents are those that the publisher's command line prints: see publisher
// events.
type publishedEvents struct {
	publisher string
	rate      int
}

// errCutShort means that there is no end of the events: some may be missing.
var errCutShort = errors.New("the publisher's events have no end: some are missing")

// Messages implements verify.Source.
func (p publishedEvents) Messages(ctx context.Context, s verify.Selection, each func(contract.Message) error) (int64, error) {
	words := append(strings.Fields(p.publisher), "events", "--rate", strconv.Itoa(p.rate))
	switch {
	case s.All:
		words = append(words, "--all")
	case s.Sample > 0:
		words = append(words, "--sample", strconv.Itoa(s.Sample))
	}
	for _, aggregate := range s.Aggregates {
		words = append(words, "--aggregate="+aggregate)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := exec.CommandContext(ctx, words[0], words[1:]...)
	var stderr bytes.Buffer
	run.Stderr = &stderr
	printed, err := begin(run)
	if err != nil {
		return 0, fmt.Errorf("run %s events: %w", p.publisher, err)
	}
	unmappable, err := readEvents(printed, each)
	if err != nil && !errors.Is(err, errCutShort) {
		cancel() // it would wait for somebody to read
	}
	if failure := printed.close(); failure != nil && (err == nil || errors.Is(err, errCutShort)) {
		err = fmt.Errorf("run %s events: %w: %s", p.publisher, failure, strings.TrimSpace(stderr.String()))
	}
	if ctx.Err() != nil && err == nil {
		err = context.Cause(ctx)
	}
	return unmappable, err
}

// keptEvents are those that publisher events has printed into a file.
type keptEvents string

// Messages implements verify.Source. A sample is all that is in the file.
func (k keptEvents) Messages(ctx context.Context, s verify.Selection, each func(contract.Message) error) (int64, error) {
	file, err := os.Open(string(k))
	if err != nil {
		return 0, fmt.Errorf("open the events: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	wanted := map[string]bool{}
	for _, aggregate := range s.Aggregates {
		wanted[aggregate] = true
	}
	return readEvents(file, func(m contract.Message) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(wanted) > 0 && !wanted[m.SessionID] {
			return nil
		}
		return each(m)
	})
}

// readEvents reads what publisher events prints. errCutShort without its last line.
func readEvents(from io.Reader, each func(contract.Message) error) (unmappable int64, err error) {
	for decoder := json.NewDecoder(bufio.NewReaderSize(from, 1<<16)); ; {
		var line struct {
			Message    json.RawMessage `json:"message"`
			Unmappable json.RawMessage `json:"unmappable"`
			End        json.RawMessage `json:"end"`
		}
		err := decoder.Decode(&line)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return unmappable, errCutShort
		case err != nil:
			return unmappable, fmt.Errorf("read the publisher's events: %w", err)
		case line.End != nil:
			return unmappable, nil
		case line.Message == nil && line.Unmappable == nil:
			return unmappable, errors.New("the publisher's events are none: run publisher events of this release")
		case line.Message == nil:
			unmappable++
			continue
		}
		message, err := readMessage(line.Message)
		if err != nil {
			return unmappable, fmt.Errorf("read the publisher's events: %w", err)
		}
		if err := each(message); err != nil {
			return unmappable, err
		}
	}
}
