package mapping

import (
	"bytes"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// Paths says where the parts of an event are in its document: field names,
// with dots between levels.
type Paths struct {
	AggregateID string
	Type        string
	// Version is the aggregate's version after the event. Where it is a path,
	// every event must have it: a sequence that rests on versions in some events
	// and on positions in others orders nothing. None when the source numbers none.
	Version string
	// Time is when the event happened; None, or an event without it, is unknown.
	Time string
	// Data is the payload, a document; None takes the whole event document.
	Data string
	// MayLackData says that an event without it has an empty one. Otherwise it is
	// unmappable: a wrong path would empty every event.
	MayLackData bool
}

// OtherOperations says what becomes of a change of an events collection that is
// not an insert. Whatever the policy, drop, rename, dropDatabase, invalidate and
// the like carry no event: they say nothing of an aggregate.
type OtherOperations string

// The policies.
const (
	// RefuseChanges passes deletions over, because retention (a TTL index, an
	// archive job) deletes old events and does not undo them. Updates and
	// replacements are unmappable: events do not change, so it is not known what
	// one that happens means, and an operator sees it.
	RefuseChanges OtherOperations = "refuse-changes"
	// RefuseAll makes deletions unmappable, too.
	RefuseAll OtherOperations = "refuse"
	// PassAll passes all of them over.
	PassAll OtherOperations = "pass"
)

// Events maps the changes of events collections. It implements relay.Mapper
// and may be used from any goroutine.
type Events struct {
	common
	other                                  OtherOperations
	aggregateID, kind, version, time, data []string
	mayLackData                            bool
	hiddenData                             *rule
}

// NewEvents returns a mapper of events.
func NewEvents(o Options, paths Paths, other OtherOperations) *Events {
	m := &Events{
		common:      newCommon(o),
		other:       other,
		aggregateID: split(paths.AggregateID),
		kind:        split(paths.Type),
		version:     split(paths.Version),
		time:        split(paths.Time),
		data:        split(paths.Data),
		mayLackData: paths.MayLackData,
	}
	m.hiddenData = m.hidden.under(m.data)
	return m
}

// Map implements relay.Mapper.
func (m *Events) Map(read relay.Change) (contract.Event, bool, error) {
	c, err := takeApart(read.Raw, m.collections)
	if err != nil {
		return contract.Event{}, false, m.astray(err)
	}
	event := contract.Event{
		Operation:   contract.Insert,
		Position:    read.Position,
		ContentType: contract.ContentTypeJSON,
	}
	switch c.operation {
	case insert:
	case snapshot:
		event.Operation = contract.Snapshot
	default:
		return contract.Event{}, false, m.astray(m.otherThanInsert(c.operation))
	}
	event.Source = m.source(c.collection)
	if err := m.fillAggregateID(&event, c.document); err != nil {
		return contract.Event{}, false, m.astray(err)
	}
	if !m.carried(event.AggregateID) {
		return contract.Event{}, false, nil
	}
	for _, fill := range [...]func(*Events, *contract.Event, []byte) error{
		(*Events).fillType, (*Events).fillVersion, (*Events).fillTime, (*Events).fillData,
	} {
		if err := fill(m, &event, c.document); err != nil {
			return contract.Event{}, false, err
		}
	}
	m.fillTraceParent(&event, c.document)
	m.identify(&event, &c)
	return event, true, nil
}

// otherThanInsert returns why a change that is no insert cannot be mapped; nil
// when it carries no event.
func (m *Events) otherThanInsert(operation string) error {
	refused := false
	switch operation {
	case update, replace:
		refused = m.other != PassAll
	case remove:
		refused = m.other == RefuseAll
	}
	if !refused {
		return nil
	}
	return &Unmappable{Problem: "an event was changed by " + operation + "; events are only ever inserted (ON_OTHER_OPERATION)"}
}

func (m *Events) fillAggregateID(event *contract.Event, document []byte) error {
	v, found := at(document, m.aggregateID)
	if !found {
		return problem(m.aggregateID, "is missing: the event has no aggregate id")
	}
	id, err := aggregateID(v, m.aggregateID)
	event.AggregateID = id
	return err
}

func (m *Events) fillType(event *contract.Event, document []byte) error {
	v, found := at(document, m.kind)
	switch {
	case !found:
		return problem(m.kind, "is missing: the event has no type")
	case v.kind != bson.TypeString:
		return problem(m.kind, "is of type %s, not a string", v.kind)
	}
	event.Type = string(v.text())
	return nil
}

func (m *Events) fillVersion(event *contract.Event, document []byte) error {
	if m.version == nil {
		return nil
	}
	v, found := at(document, m.version)
	if !found {
		return problem(m.version, "is missing: the event has no version; set FIELD_VERSION=%s if the source numbers none", None)
	}
	var number int64
	switch v.kind {
	case bson.TypeInt32:
		number = int64(v.int32())
	case bson.TypeInt64:
		number = v.int64()
	case bson.TypeDouble:
		f := math.Float64frombits(uint64(v.int64()))
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return problem(m.version, "is %v, not a whole number", f)
		}
		number = int64(f)
	default:
		return problem(m.version, "is of type %s, not a whole number", v.kind)
	}
	if number < 0 {
		return problem(m.version, "is %d, below 0", number)
	}
	event.Version = contract.VersionOf(number)
	return nil
}

func (m *Events) fillTime(event *contract.Event, document []byte) error {
	v, found := at(document, m.time)
	if !found {
		return nil
	}
	switch v.kind {
	case bson.TypeDateTime:
		event.Time = time.UnixMilli(v.int64()).UTC()
	case bson.TypeString:
		t, err := time.Parse(time.RFC3339Nano, string(v.text()))
		if err != nil {
			return problem(m.time, "is %q, not an RFC 3339 time", v.text())
		}
		event.Time = t.UTC()
	default:
		return problem(m.time, "is of type %s, not a date", v.kind)
	}
	if year := event.Time.Year(); year < 0 || year > 9999 {
		return problem(m.time, "is in the year %d, which RFC 3339 cannot write", year)
	}
	return nil
}

// emptyDocument is the data of an event that has none.
var emptyDocument = []byte("{}")

func (m *Events) fillData(event *contract.Event, document []byte) error {
	data := document
	if m.data != nil {
		v, found := at(document, m.data)
		switch {
		case !found && !m.mayLackData:
			return problem(m.data, "is missing: the event has no payload where FIELD_DATA says")
		case !found:
			event.Data = bytes.Clone(emptyDocument)
			return nil
		case v.kind != bson.TypeEmbeddedDocument:
			return problem(m.data, "is of type %s, not a document", v.kind)
		}
		data = v.data
	}
	var err error
	event.Data, event.ContentType, err = inJSONOrBSON(
		func() ([]byte, error) { return appendJSON(make([]byte, 0, len(data)+len(data)/4), data, m.hiddenData) },
		func() ([]byte, error) { return appendBSON(nil, data, m.hiddenData) },
	)
	if err != nil {
		return problem(m.data, "%s", err)
	}
	return nil
}
