package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// projectionsOf are those of a file; with "" those of the program, of its code and of
// the files that PROJECTIONS names.
func projectionsOf(ctx context.Context, path string) (projection.Projections, error) {
	if path != "" {
		return projection.Load(path)
	}
	projections, err := config.Projections(ctx)
	return projections, cli.Misconfigured(err)
}

// validate checks projections, of a file or of the program, and prints what they are,
// one a line.
func validate(ctx context.Context, path string, stdout io.Writer) error {
	projections, err := projectionsOf(ctx, path)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(stdout)
	for _, p := range projections {
		shown := struct {
			Name        string   `json:"name"`
			Collections []string `json:"collections"`
			Types       []string `json:"types,omitempty"`
		}{Name: p.Name(), Collections: p.Collections()}
		if typed, ok := p.(interface{ Types() []string }); ok {
			shown.Types = typed.Types()
		}
		if err := lines.Encode(shown); err != nil {
			return fmt.Errorf("print projections: %w", err)
		}
	}
	return nil
}

// try prints the updates that projections, of a file or of the program, make of the
// events in another file, one a line: events as a sample writes them, or as parked show prints
// them. It talks to no server. An event that nobody follows is an error. It ends
// with ctx, also while it waits for a file that is a pipe.
func try(ctx context.Context, path, eventPath string, stdout, stderr io.Writer) error {
	projections, err := projectionsOf(ctx, path)
	if err != nil {
		return err
	}
	projections = projections.Telling(func(p *projection.PanicError) { fmt.Fprintf(stderr, "%s\n", p.Stack) })
	content, err := readFile(ctx, eventPath)
	if err != nil {
		return fmt.Errorf("read the event: %w", err)
	}
	samples, err := ReadSamples(eventPath, content)
	if err != nil {
		return err
	}
	for _, sample := range samples {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sample.Change.Within(ctx)
		if len(projections.Followers(sample.Change.Type)) == 0 {
			return fmt.Errorf("no projection in %s follows events of type %q: the projector passes them by", cmp.Or(path, "this program"), sample.Change.Type)
		}
		err := explain(projections, sample, stdout)
		if errors.Is(err, projection.ErrInterrupted) {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func explain(projections projection.Projections, sample Sample, stdout io.Writer) error {
	writes, err := sample.Decide(projections)
	if err != nil {
		return err
	}
	for i := range writes {
		if writes[i].Passed {
			continue
		}
		line, err := bson.MarshalExtJSON(readmodel.Explain(&writes[i], time.Now()), false, false)
		if err != nil {
			return fmt.Errorf("print an update: %w", err)
		}
		if _, err := fmt.Fprintf(stdout, "%s\n", line); err != nil {
			return fmt.Errorf("print an update: %w", err)
		}
	}
	return nil
}

// readFile reads a file until ctx ends. Opening or reading a pipe cannot be called
// off, so what waits for one is left to the end of the process.
func readFile(ctx context.Context, path string) ([]byte, error) {
	type file struct {
		content []byte
		err     error
	}
	read := make(chan file, 1)
	go func() {
		content, err := os.ReadFile(path)
		read <- file{content, err}
	}()
	select {
	case f := <-read:
		return f.content, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
