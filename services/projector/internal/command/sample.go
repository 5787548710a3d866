package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Sample is an event to try projections on.
type Sample struct {
	Change *projection.Change
	// State is the aggregate's document as it is before the event; nil for none.
	State bson.Raw
}

// Decide is what projections make of the event.
func (s *Sample) Decide(projections projection.Projections) ([]projection.Write, error) {
	writes, err := projections.Decide(s.Change)
	for i := range writes {
		if err == nil && writes[i].Complete != nil {
			writes[i], err = writes[i].Complete(s.State)
		}
	}
	return writes, err
}

// sampleFields are those of an event as try reads it.
type sampleFields struct {
	ID          string             `json:"id"`
	Type        string             `json:"type"`
	AggregateID string             `json:"aggregateId"`
	Version     int64              `json:"version"`
	Time        time.Time          `json:"time"`
	Operation   contract.Operation `json:"operation"`
	Data        json.RawMessage    `json:"data"`
}

// ReadSamples reads the events in a file, one JSON object after another.
func ReadSamples(path string, content []byte) ([]Sample, error) {
	var samples []Sample
	for decoder := json.NewDecoder(bytes.NewReader(content)); ; {
		var text json.RawMessage
		err := decoder.Decode(&text)
		if errors.Is(err, io.EOF) && len(samples) > 0 {
			return samples, nil
		}
		var sample Sample
		if err == nil {
			sample, err = readSample(text)
		}
		if err != nil {
			return nil, fmt.Errorf("the event in %s: %w", path, err)
		}
		samples = append(samples, sample)
	}
}

// readSample reads an event. What is left out gets a value that an event could
// have, unless it is a parked message.
func readSample(text []byte) (s Sample, err error) {
	var parked struct {
		Message json.RawMessage `json:"message"`
		State   json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(text, &parked); err != nil {
		return s, err
	}
	if parked.State != nil {
		if err := bson.UnmarshalExtJSON(parked.State, false, &s.State); err != nil {
			return s, fmt.Errorf("state: %w", err)
		}
	}
	var message contract.Message
	if parked.Message != nil {
		message, err = readMessage(parked.Message)
	} else {
		message, err = sampleMessage(text)
	}
	if err != nil {
		return s, err
	}
	event, err := contract.Decode(message, contract.DecodeOptions{})
	if err != nil {
		return s, err
	}
	s.Change, err = projection.Read(event)
	return s, err
}

func sampleMessage(text []byte) (contract.Message, error) {
	s := sampleFields{ID: "event-1", AggregateID: "aggregate-1", Version: 1, Operation: contract.Insert, Time: time.Now().UTC().Truncate(time.Millisecond)}
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
