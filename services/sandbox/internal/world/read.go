package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// UnmarshalJSON reads a time such as "20ms".
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s is not a time such as \"20ms\"", text)
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a time such as \"20ms\"", s)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes a time as UnmarshalJSON reads it.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// Read reads a world of one's own. The error names the field.
func Read(from io.Reader) (World, error) {
	var fields map[string]json.RawMessage
	decoder := json.NewDecoder(from)
	if err := decoder.Decode(&fields); err != nil {
		return World{}, fmt.Errorf("a world is a JSON object: %w", err)
	}
	if fields == nil {
		return World{}, errors.New("a world is a JSON object, not null")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return World{}, fmt.Errorf("something follows the world's JSON object")
	}
	w := World{Name: "custom"}
	if text, given := fields["base"]; given {
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return World{}, fmt.Errorf("base: %s is not the name of a world", text)
		}
		base, err := Named(name)
		if err != nil {
			return World{}, fmt.Errorf("base: %w", err)
		}
		w = base
		delete(fields, "base")
	}
	if err := read(reflect.ValueOf(&w).Elem(), fields, ""); err != nil {
		return World{}, err
	}
	return w, w.check()
}

// read sets the fields of a struct that are given. The Link of a server is part of it.
func read(into reflect.Value, given map[string]json.RawMessage, path string) error {
	known := byName(into)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field, ok := known[name]
		if !ok {
			return fmt.Errorf("%s%s: there is no such field; there are %s", path, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if string(given[name]) == "null" {
			return fmt.Errorf("%s%s: null is no figure: leave the field out", path, name)
		}
		if field.Kind() == reflect.Struct {
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(given[name], &inner); err != nil {
				return fmt.Errorf("%s%s: %s is not an object", path, name, given[name])
			}
			if err := read(field, inner, path+name+"."); err != nil {
				return err
			}
			continue
		}
		if err := json.Unmarshal(given[name], field.Addr().Interface()); err != nil {
			return fmt.Errorf("%s%s: %w", path, name, err)
		}
	}
	return nil
}

// byName has a struct's fields, and those of what it embeds, by their names in JSON.
func byName(of reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for i := range of.NumField() {
		if of.Type().Field(i).Anonymous {
			maps.Copy(fields, byName(of.Field(i)))
			continue
		}
		fields[of.Type().Field(i).Tag.Get("json")] = of.Field(i)
	}
	return fields
}

// Fields lists all figures of a world by their names, such as service_bus.send.p50.
func (w World) Fields() map[string]any {
	out := map[string]any{}
	collect(reflect.ValueOf(w), "", out)
	return out
}

func collect(of reflect.Value, path string, out map[string]any) {
	for name, field := range byName(of) {
		if field.Kind() == reflect.Struct {
			collect(field, path+name+".", out)
			continue
		}
		out[path+name] = field.Interface()
	}
}

const (
	// longest is the longest time that a world may have.
	longest = Duration(24 * time.Hour)
	// largest is the largest number that a world may have, and mostCredits of credits: a
	// batch costs them for each message and each rule.
	largest, mostCredits = int64(1_000_000_000_000), int64(1_000_000)
)

// check says which figure cannot be, by its name.
func (w World) check() error {
	fields := w.Fields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[name].(type) {
		case int64:
			most := largest
			if strings.HasPrefix(name, "service_bus.credits") || strings.HasPrefix(name, "service_bus.costs.") {
				most = mostCredits
			}
			if v < 0 {
				return fmt.Errorf("%s: %d is below 0", name, v)
			}
			if v > most {
				return fmt.Errorf("%s: %d is above %d", name, v, most)
			}
		case Duration:
			if v < 0 || v > longest {
				return fmt.Errorf("%s: %s is not between 0 and %s", name, time.Duration(v), time.Duration(longest))
			}
		}
	}
	b := w.ServiceBus
	for name, l := range map[string]Latency{"send": b.Send, "settle": b.Settle, "accept": b.Accept} {
		if l.P50 == 0 && l.P99 > 0 {
			return fmt.Errorf("service_bus.%s.p99: it has no effect without p50", name)
		}
		if l.P99 < l.P50 {
			return fmt.Errorf("service_bus.%s.p99: %s is below p50, %s", name, time.Duration(l.P99), time.Duration(l.P50))
		}
	}
	if b.CreditsPerSecond == 0 && b.Costs != (Costs{}) {
		return fmt.Errorf("service_bus.costs: they have no effect without service_bus.credits_per_second")
	}
	if b.MaxMessageBytes > 0 && b.MaxMessageBytes < kb {
		return fmt.Errorf("service_bus.max_message_bytes: %d is below %d, the least that an entity may have", b.MaxMessageBytes, kb)
	}
	if b.BusyWait > 0 && b.CreditsPerSecond == 0 && b.MessagesPerSecond == 0 && b.ThroughputBytes == 0 {
		return fmt.Errorf("service_bus.busy_wait: it has no effect where nothing is refused: without credits_per_second, messages_per_second and throughput_bytes_per_second")
	}
	if b.QueueTime > 0 && b.MessagesPerSecond == 0 && b.ThroughputBytes == 0 {
		return fmt.Errorf("service_bus.queue_time: it has no effect without messages_per_second or throughput_bytes_per_second")
	}
	return nil
}
