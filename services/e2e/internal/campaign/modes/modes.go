// Package modes draws the settings that a campaign runs with, among those that change
// how events are carried, and not what comes of them.
package modes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/harness/cluster"
)

// Mode is settings over the defaults.
type Mode struct {
	Publisher, Projector map[string]string
	// Beside says that a second group of projectors makes a read model of its own of
	// another subscription.
	Beside bool
	// Keyed says that the projectors keep documents of another key as well.
	Keyed bool
	// InGo says that the projectors have a projection in Go as well.
	InGo bool
	// Repairs says that the projectors have projections that operators damage, compare and
	// build anew while faults go on.
	Repairs bool
	// Halted says that thousands of aggregates are halted from the beginning on.
	Halted bool
	// Documents says what a source in documents mode shows; nil where documents are
	// events.
	Documents *expect.Images
	// Early says that events are written before there are publishers, which copy them.
	Early bool
	// Skips says that the projectors go on without events that a projection cannot apply,
	// and that some of the load are such events.
	Skips bool
}

// choice is a setting with the values that it is drawn from. An empty value leaves the
// default, and stands as often as that is wanted.
type choice struct {
	name   string
	values []string
}

// partitions are how many streams the publishers divide their source into.
var partitions = []choice{{"PARTITIONS", []string{"", "2", "3"}}}

var publisher = []choice{
	partitions[0],
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

// later are settings of the publishers that are drawn after everything else, so that what
// a seed draws before stays as it was.
var later = []choice{
	{"BATCHING", []string{"", "mixed"}},
}

// hidings are fields of events that messages do not show. Projections read some of those
// that are masked, and none of those that are left out.
var hidings = []expect.Hidden{
	{Dropped: []string{"data.laden"}, Masked: []string{"data.tracking", "data.reason"}},
	{Dropped: []string{"data.laden.plain", "data.laden.data"}, Masked: []string{"data.laden.constructor", "data.method", "data.note"}},
	{Masked: []string{"data.laden", "data.carrier"}},
}

// documentHidings are the same of a source in documents mode. Some of what is hidden is
// changed by itself, and some is removed.
var documentHidings = []expect.Hidden{
	{Dropped: []string{"steps", "data.laden"}, Masked: []string{"once", "data.tracking"}},
	{Dropped: []string{"once", "data.laden.plain"}, Masked: []string{"steps", "data.note"}},
}

// skipping are policies that go on without what a projection cannot apply.
var skipping = []string{"evaluate=skip", "evaluate=deadletter"}

// severalCollections is the stream of two collections, each with the events of half of the
// aggregates.
var severalCollections = cluster.DefaultNames().SourceCollection + "," + secondCollection

const secondCollection = "other_events"

// Draw draws a mode from a seed.
func Draw(seed uint64) Mode {
	rng := rand.New(rand.NewPCG(seed, 0x6d6f646573))
	m := Mode{Publisher: draw(rng, publisher), Projector: draw(rng, projector)}
	if m.Publisher["SOURCE_COLLECTIONS"] != "" {
		m.Publisher["SOURCE_COLLECTION"], m.Publisher["STREAM_NAME"] = "", "several"
	}
	// What is drawn later leaves what a seed draws before as it was.
	m.Beside = rng.IntN(2) == 0
	m.Keyed = rng.IntN(2) == 0
	m.InGo = rng.IntN(3) == 0
	if rng.IntN(3) == 0 {
		m = m.OfDocuments(expect.Images{Full: full[rng.IntN(len(full))], Before: rng.IntN(2) == 0})
	}
	if rng.IntN(3) == 0 && m.Documents == nil {
		m = m.Repaired()
	}
	if rng.IntN(4) == 0 && !m.Repairs {
		m.Halted, m.Projector["HALT_LIMIT"] = true, "0" // which stops nothing
	}
	maps.Copy(m.Publisher, draw(rng, later))
	if h := hidings[rng.IntN(len(hidings))]; rng.IntN(3) == 0 && m.Documents == nil && !m.Repairs {
		m.hide(h)
	}
	if h := documentHidings[rng.IntN(len(documentHidings))]; rng.IntN(2) == 0 && m.Documents != nil {
		m.hide(h)
	}
	if rng.IntN(4) == 0 && m.Documents == nil && !m.Repairs {
		m.Early, m.Publisher["START_AT"] = true, "snapshot"
	}
	if policy := skipping[rng.IntN(len(skipping))]; rng.IntN(3) == 0 && m.Documents == nil && !m.Repairs && !m.Halted {
		m = m.Skipping(policy)
	}
	if rng.IntN(2) == 0 && m.Skips { // by one action for whatever fails: no more does
		m.Projector["ON_ERROR"] = strings.TrimPrefix(m.Projector["ON_ERROR"], "evaluate=")
	}
	return m
}

// Skipping is the mode with projectors that go on without what a projection cannot apply,
// by a policy of theirs.
func (m Mode) Skipping(policy string) Mode {
	settings := map[string]string{"ON_ERROR": policy, "HALT_LIMIT": "0"} // which stops nothing
	maps.Copy(settings, m.Projector)
	m.Skips, m.Projector = true, settings
	return m
}

// hide has messages not show fields.
func (m Mode) hide(h expect.Hidden) {
	m.Publisher["DROP_FIELDS"], m.Publisher["MASK_FIELDS"] = strings.Join(h.Dropped, ","), strings.Join(h.Masked, ",")
}

// hidden is what messages do not show of events.
func (m Mode) hidden() expect.Hidden {
	paths := func(setting string) []string {
		if m.Publisher[setting] == "" {
			return nil
		}
		return strings.Split(m.Publisher[setting], ",")
	}
	return expect.Hidden{Dropped: paths("DROP_FIELDS"), Masked: paths("MASK_FIELDS")}
}

// Repaired is the mode with repairs. A source of several collections is none that can be
// sent again, nor one that is not there as a whole; with halts nothing is built anew, and
// readers compare documents with whole events.
func (m Mode) Repaired() Mode {
	m = m.OfEvents()
	m.Repairs, m.Halted, m.Publisher, m.Projector = true, false, m.ofWholeEvents(), maps.Clone(m.Projector)
	m = m.withEvery()
	m.Publisher["HEAL_FIELD"] = "time" // no id of an event says when it was written
	delete(m.Projector, "HALT_LIMIT")
	return m
}

// withEvery is the mode in which every projection has every event, and nothing is copied.
func (m Mode) withEvery() Mode {
	m.Projector = maps.Clone(m.Projector)
	if m.Skips {
		delete(m.Projector, "HALT_LIMIT")
		delete(m.Projector, "ON_ERROR")
	}
	delete(m.Publisher, "START_AT")
	m.Early, m.Skips = false, false
	return m
}

// Unrepaired is the mode without repairs.
func (m Mode) Unrepaired() Mode {
	m.Repairs = false
	return m
}

// ofWholeEvents are the publishers' settings with a source of one collection, of which
// nothing is hidden.
func (m Mode) ofWholeEvents() map[string]string {
	settings := maps.Clone(m.Publisher)
	if settings == nil {
		settings = make(map[string]string)
	}
	delete(settings, "HEAL_FIELD")
	delete(settings, "DROP_FIELDS")
	delete(settings, "MASK_FIELDS")
	if settings["SOURCE_COLLECTIONS"] != "" {
		for _, name := range []string{"SOURCE_COLLECTIONS", "SOURCE_COLLECTION", "STREAM_NAME"} {
			delete(settings, name)
		}
	}
	return settings
}

// full is what an update shows of its document; operators of these read it, too.
var full = []string{expect.Required, expect.Available, expect.LookedUp, expect.Nothing}

// DrawForOperators draws what there is to draw where operators make mistakes: a source in
// documents mode, or none, documents of another key, or none, and a number of partitions.
// Updates show their documents as they were: what is lost is told from what is left, and
// one that was looked up has both.
func DrawForOperators(seed uint64) Mode {
	rng := rand.New(rand.NewPCG(seed, 0x6f70657261))
	m := Mode{Publisher: map[string]string{}}
	if rng.IntN(3) == 0 {
		m = m.OfDocuments(expect.Images{Full: full[rng.IntN(2)]})
	}
	m.Keyed = rng.IntN(2) == 0
	maps.Copy(m.Publisher, draw(rng, partitions))
	return m
}

// OfDocuments is the mode with a source in documents mode: one collection, and no repairs,
// which go by versions.
func (m Mode) OfDocuments(images expect.Images) Mode {
	m.Documents, m.Repairs, m.Publisher = &images, false, m.ofWholeEvents()
	m = m.withEvery()
	m.Publisher["MODE"], m.Publisher["FULL_DOCUMENT"] = "documents", images.Full
	if images.Before {
		m.Publisher["FULL_DOCUMENT_BEFORE_CHANGE"] = "required"
	}
	return m
}

// OfEvents is the mode with documents that are events.
func (m Mode) OfEvents() Mode {
	if m.Documents == nil {
		return m
	}
	m.Documents, m.Publisher = nil, maps.Clone(m.Publisher)
	for _, name := range []string{"MODE", "FULL_DOCUMENT", "FULL_DOCUMENT_BEFORE_CHANGE", "DROP_FIELDS", "MASK_FIELDS"} {
		delete(m.Publisher, name)
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
	more := ""
	if m.Beside {
		more += "; a second group"
	}
	if m.Keyed {
		more += "; documents of another key"
	}
	if m.InGo {
		more += "; a projection in Go"
	}
	if m.Halted {
		more += fmt.Sprintf("; %d halted aggregates", manyHalted)
	}
	if m.Repairs {
		more += "; repairs"
	}
	if m.Skips {
		more += "; events that a projection goes on without"
	}
	return "publishers: " + text(m.Publisher) + "; projectors: " + text(m.Projector) + more
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
