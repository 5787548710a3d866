// Package modes draws the settings that a campaign runs with, among those that change
// how events are carried, and not what comes of them.
package modes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/cluster"
)

// Mode is settings over the defaults.
type Mode struct {
	Publisher, Projector map[string]string
}

// choice is a setting with the values that it is drawn from. An empty value leaves the
// default, and stands as often as that is wanted.
type choice struct {
	name   string
	values []string
}

var publisher = []choice{
	{"PARTITIONS", []string{"", "2", "3"}},
	{"SOURCE_COLLECTIONS", []string{"", severalCollections}},
	{"BATCH_SIZE", []string{"", "20"}},
	{"SENDERS", []string{"", "64"}},
	{"MAX_IN_FLIGHT", []string{"", "1000"}},
	{"COMPRESS_ABOVE", []string{"", "0", "1"}},
	{"CHECKPOINT_INTERVAL", []string{"", "10ms", "2s"}},
}

var projector = []choice{
	{"ON_GAP", []string{"", "wait"}},
	{"SERVICEBUS_RECEIVER", []string{"", "sdk"}},
	{"BATCH_SIZE", []string{"", "30"}},
	{"MAX_SESSIONS", []string{"", "32"}},
	{"KEEP_TIME", []string{"", "0"}},
	{"HOLD_MESSAGES", []string{"", "200"}},
}

// severalCollections is the stream of two collections, in one of which nothing is written.
var severalCollections = cluster.DefaultNames().SourceCollection + ",other_events"

// Draw draws a mode from a seed.
func Draw(seed uint64) Mode {
	rng := rand.New(rand.NewPCG(seed, 0x6d6f646573))
	m := Mode{Publisher: draw(rng, publisher), Projector: draw(rng, projector)}
	if m.Publisher["SOURCE_COLLECTIONS"] != "" {
		m.Publisher["SOURCE_COLLECTION"], m.Publisher["STREAM_NAME"] = "", "several"
	}
	return m
}

func draw(rng *rand.Rand, from []choice) map[string]string {
	drawn := make(map[string]string)
	for _, c := range from {
		if value := c.values[rng.IntN(len(c.values))]; value != "" {
			drawn[c.name] = value
		}
	}
	return drawn
}

func (m Mode) String() string {
	return "publishers: " + text(m.Publisher) + "; projectors: " + text(m.Projector)
}

func text(settings map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		parts = append(parts, fmt.Sprintf("%s=%s", name, settings[name]))
	}
	if parts == nil {
		return "defaults"
	}
	return strings.Join(parts, " ")
}
