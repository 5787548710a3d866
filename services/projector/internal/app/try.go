package app

import (
	"encoding/json"
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

// try prints the updates that the projections of a file make of an event, one a
// line. It talks to no server.
func try(path, eventPath string, stdout io.Writer) error {
	projections, err := projection.Load(path)
	if err != nil {
		return err
	}
	change, err := readSample(eventPath)
	if err != nil {
		return err
	}
	writes, err := projections.Decide(change)
	if err != nil {
		return err
	}
	for i := range writes {
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

// readSample reads an event from a file. What is left out gets a value that an
// event could have.
func readSample(path string) (*projection.Change, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	s := sample{ID: "event-1", AggregateID: "aggregate-1", Version: 1, Operation: contract.Insert, Time: time.Now().UTC().Truncate(time.Millisecond)}
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("read the event in %s: %w", path, err)
	}
	if s.Type == "" {
		return nil, fmt.Errorf("read the event in %s: type is missing", path)
	}
	position := contract.StreamPosition(uint32(s.Time.Unix()), 1, "82")
	event := contract.Event{
		ID: s.ID, Source: "/try/events", Type: s.Type, AggregateID: s.AggregateID, Time: s.Time, Operation: s.Operation,
		Position: position, Version: contract.VersionOf(s.Version), Sequence: contract.SequenceOf(contract.VersionOf(s.Version), position), Term: 1,
	}
	if len(s.Data) > 0 {
		event.ContentType, event.Data = contract.ContentTypeJSON, s.Data
	}
	message, err := contract.Encode(event, contract.EncodeOptions{})
	if err != nil {
		return nil, fmt.Errorf("the event in %s: %w", path, err)
	}
	if event, err = contract.Decode(message, contract.DecodeOptions{}); err != nil {
		return nil, fmt.Errorf("the event in %s: %w", path, err)
	}
	change, err := projection.Read(event)
	if err != nil {
		return nil, fmt.Errorf("the event in %s: %w", path, err)
	}
	return change, nil
}
