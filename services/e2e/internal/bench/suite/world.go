package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// worldOf is a world as the sandbox takes it, by a name or a file; empty for none.
func worldOf(given string) (string, error) {
	if given == "" {
		return "", nil
	}
	if strings.ContainsAny(given, "./") {
		text, err := os.ReadFile(given)
		if err != nil {
			return "", fmt.Errorf("--world: %w", err)
		}
		return string(text), nil
	}
	return based(given, nil, nil), nil
}

// based is a world that differs from a named one.
func based(base string, mongo, bus map[string]any) string {
	world := map[string]any{"base": base}
	if mongo != nil {
		world["mongodb"] = mongo
	}
	if bus != nil {
		world["service_bus"] = bus
	}
	text, err := json.Marshal(world)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return string(text)
}

// in has b's stages be in a world while do runs.
func (b *bench) in(world string, do func() error) error {
	before := b.cfg.World
	b.cfg.World = world
	defer func() { b.cfg.World = before }()
	return do()
}

// told says now and then how a long measurement is getting on.
type told struct {
	say  func(format string, args ...any)
	last time.Time
}

func (b *bench) telling() *told { return &told{b.say, time.Now()} }

func (t *told) now(format string, args ...any) {
	const every = 10 * time.Second
	if time.Since(t.last) < every {
		return
	}
	t.last = time.Now()
	t.say("        "+format, args...)
}
