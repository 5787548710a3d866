package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// validate checks a file of projections and prints what is in it, one a line.
func validate(path string, stdout io.Writer) error {
	projections, err := projection.Load(path)
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

// sample is an event as try reads it.
type sample struct {
	ID          string             `json:"id"`
	Type        string             `json:"type"`
	AggregateID string             `json:"aggregateId"`
	Version     int64              `json:"version"`
	Time        time.Time          `json:"time"`
	Operation   contract.Operation `json:"operation"`
	Data        json.RawMessage    `json:"data"`
}

// try prints the updates that the projections of a file make of the events in
// another, one a line: events as a sample writes them, or as parked show prints
// them. It talks to no server. An event that nobody follows is an error. It ends
// with ctx, also while it waits for a file that is a pipe.
func try(ctx context.Context, path, eventPath string, stdout io.Writer) error {
	projections, err := projection.Load(path)
	if err != nil {
		return err
	}
	content, err := readFile(ctx, eventPath)
	if err != nil {
		return fmt.Errorf("read the event: %w", err)
	}
	changes, err := readSamples(eventPath, content)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		change.Within(ctx)
		if len(projections.Followers(change.Type)) == 0 {
			return fmt.Errorf("no projection in %s follows events of type %q: the projector passes them by", path, change.Type)
		}
		err := explain(projections, change, stdout)
		if errors.Is(err, projection.ErrInterrupted) {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func explain(projections projection.Projections, change *projection.Change, stdout io.Writer) error {
	writes, err := projections.Decide(change)
	if err != nil {
		return err
	}
	for i := range writes {
		if writes[i].Passed {
			continue
		}
		if writes[i].Complete != nil {
			if writes[i], err = writes[i].Complete(nil); err != nil {
				return err
			}
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

// readSamples reads the events in a file, one JSON object after another.
func readSamples(path string, content []byte) ([]*projection.Change, error) {
	var changes []*projection.Change
	for decoder := json.NewDecoder(bytes.NewReader(content)); ; {
		var text json.RawMessage
		err := decoder.Decode(&text)
		if errors.Is(err, io.EOF) && len(changes) > 0 {
			return changes, nil
		}
		var change *projection.Change
		if err == nil {
			change, err = readSample(text)
		}
		if err != nil {
			return nil, fmt.Errorf("the event in %s: %w", path, err)
		}
		changes = append(changes, change)
	}
}

// readSample reads an event. What is left out gets a value that an event could
// have, unless it is a parked message.
func readSample(text []byte) (*projection.Change, error) {
	var parked struct {
		Message json.RawMessage `json:"message"`
	}
	if err := json.Unmarshal(text, &parked); err != nil {
		return nil, err
	}
	var message contract.Message
	var err error
	if parked.Message != nil {
		message, err = readMessage(parked.Message)
	} else {
		message, err = sampleMessage(text)
	}
	if err != nil {
		return nil, err
	}
	event, err := contract.Decode(message, contract.DecodeOptions{})
	if err != nil {
		return nil, err
	}
	return projection.Read(event)
}

func sampleMessage(text []byte) (contract.Message, error) {
	s := sample{ID: "event-1", AggregateID: "aggregate-1", Version: 1, Operation: contract.Insert, Time: time.Now().UTC().Truncate(time.Millisecond)}
	if err := json.Unmarshal(text, &s); err != nil {
		return contract.Message{}, err
	}
	if s.Type == "" {
		return contract.Message{}, errors.New("type is missing")
	}
	position := contract.StreamPosition(uint32(s.Time.Unix()), 1, "82")
	event := contract.Event{
		ID: s.ID, Source: "/try/events", Type: s.Type, AggregateID: s.AggregateID, Time: s.Time, Operation: s.Operation,
		Position: position, Version: contract.VersionOf(s.Version), Sequence: contract.SequenceOf(contract.VersionOf(s.Version), position), Term: 1,
	}
	if len(s.Data) > 0 {
		event.ContentType, event.Data = contract.ContentTypeJSON, s.Data
	}
	return contract.Encode(event, contract.EncodeOptions{})
}
