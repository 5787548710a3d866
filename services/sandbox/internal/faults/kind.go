package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kind is one kind of fault.
type Kind struct {
	// Name is what bodies name it by: the side and the fault, such as
	// "servicebus.cut".
	Name string
	// Does says in a sentence what it does.
	Does string
	// Example is a body that starts it.
	Example string

	start func(body []byte) (Effect, error)
}

// Effect is what a fault has done and still does.
type Effect struct {
	// Affected counts what it hit at once: connections, links, sessions.
	Affected int
	// End ends a fault that lasts; nil for one that is over. It is called once,
	// by any goroutine.
	End func()
}

// NewKind makes a kind whose fields are those of P, by their JSON names. Start
// is called with what the body says; a body with fields that P does not have is
// refused before. Its errors are the caller's fault. Several calls may run at
// once.
func NewKind[P any](name, does, example string, start func(P) (Effect, error)) Kind {
	return Kind{Name: name, Does: does, Example: example, start: func(body []byte) (Effect, error) {
		var fields P
		if err := decode(body, &fields); err != nil {
			return Effect{}, err
		}
		return start(fields)
	}}
}

// decode fills a kind's fields from the body, less the ones common to all kinds.
func decode(body []byte, fields any) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return err
	}
	delete(all, "kind")
	delete(all, "for")
	own, err := json.Marshal(all)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(own))
	decoder.DisallowUnknownFields()
	return decoder.Decode(fields)
}

// common are the fields of every body.
type common struct {
	Kind string   `json:"kind"`
	For  Duration `json:"for"`
}

func decodeCommon(body []byte) (common, error) {
	var c common
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&c); err != nil {
		return c, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return c, errors.New("more than one JSON value")
	}
	return c, nil
}

// Duration is a time.Duration that JSON writes as "1m30s".
type Duration time.Duration

// MarshalText writes it as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration takes, but nothing negative.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if parsed < 0 {
		return fmt.Errorf("duration %q is negative", text)
	}
	*d = Duration(parsed)
	return nil
}
