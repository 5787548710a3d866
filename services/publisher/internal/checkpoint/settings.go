package checkpoint

import (
	"fmt"
	"maps"
	"slices"
)

// Meaning is what the change of a setting means for a stream.
type Meaning int

// The meanings.
const (
	// Another: it would be another stream. It halts until that is accepted.
	Another Meaning = iota
	// Noted: it is the same stream, and sends otherwise from here on. It goes on,
	// and the ledger says from where.
	Noted
	// Warned: it need not be another stream. It goes on with a warning.
	Warned
	// routed: it says of which aggregate a change is. Where the stream is split,
	// that decides which partition carries it, so it is Another; else it is Noted.
	routed
)

// namespace is the setting that is not compared by its letters.
const namespace = "SERVICEBUS_NAMESPACE"

// identity are the settings that a stream's record keeps, and what a change of
// each means. Settings that are not here may change at any time.
var identity = []struct {
	name    string
	meaning Meaning
}{
	{"SOURCE_DATABASE", Another},
	{"SOURCE_COLLECTION", Another}, // or SOURCE_COLLECTIONS
	{"MODE", Another},
	{"SERVICEBUS_TOPIC", Another},
	{"SOURCE_FILTER", Noted},
	{"FIELD_AGGREGATE_ID", routed},
	{"FIELD_VERSION", Noted},
	{"FIELD_TYPE", Noted},
	{"FIELD_TIME", Noted},
	{"FIELD_DATA", Noted},
	{"DROP_FIELDS", Noted},
	{"MASK_FIELDS", Noted},
	{"ON_OTHER_OPERATION", Noted},
	{"DOCUMENT_AGGREGATE_ID", routed},
	{"FULL_DOCUMENT", Warned},
	{"FULL_DOCUMENT_BEFORE_CHANGE", Warned},
	{namespace, Another}, // but see otherNamespace
}

// routing are the settings that decide which partition carries a change.
var routing = []string{"SOURCE_COLLECTION", "MODE", "FIELD_AGGREGATE_ID", "DOCUMENT_AGGREGATE_ID"}

// Settings are the values of a stream's settings by their names. A missing one is
// unknown; an empty one is known to be empty.
type Settings map[string]string

// SettingChange is a setting whose value has changed.
type SettingChange struct {
	Name, Was, Is string
	Meaning       Meaning
}

// String says what changed, for people.
func (c SettingChange) String() string {
	return fmt.Sprintf("%s was %q, now it is %q", c.Name, c.Was, c.Is)
}

// Changes are the settings of the stream, known on both sides, that differ from
// what they are now, in a fixed order.
func (r *Record) Changes(now Settings) []SettingChange {
	var all []SettingChange
	for _, setting := range identity {
		was, known := r.Settings[setting.name]
		is, given := now[setting.name]
		meaning, differ := setting.meaning, was != is
		switch {
		case setting.name == namespace:
			meaning, differ = otherNamespace(was, is)
		case meaning == routed && r.Partitions > 1:
			meaning = Another
		case meaning == routed:
			meaning = Noted
		}
		if known && given && differ {
			all = append(all, SettingChange{Name: setting.name, Was: was, Is: is, Meaning: meaning})
		}
	}
	return all
}

// Changed are the changes of one meaning, for people.
func (r *Record) Changed(now Settings, meaning Meaning) []string {
	return r.changed(now, func(c SettingChange) bool { return c.Meaning == meaning })
}

// Rerouted are the changes that move aggregates to other partitions of the stream, for
// people.
func (r *Record) Rerouted(now Settings) []string {
	if r.Partitions < 2 {
		return nil
	}
	return r.changed(now, func(c SettingChange) bool { return slices.Contains(routing, c.Name) })
}

func (r *Record) changed(now Settings, which func(SettingChange) bool) []string {
	var all []string
	for _, change := range r.Changes(now) {
		if which(change) {
			all = append(all, change.String())
		}
	}
	return all
}

// Accepting are the settings of the stream after an operator's decision: of the
// operator's settings, those that make it another stream are taken over. Other changes
// are left for the publisher that continues, which notes them with the place.
func (r *Record) Accepting(now Settings) Settings {
	accepted := r.Settings.With(now)
	for _, change := range r.Changes(now) {
		if change.Meaning != Another {
			accepted[change.Name] = change.Was
		}
	}
	return accepted
}

// With are the settings with what is known now in place of what was.
func (s Settings) With(now Settings) Settings {
	merged := maps.Clone(s)
	if merged == nil {
		merged = Settings{}
	}
	maps.Copy(merged, now)
	return merged
}
