package contract

// Place reads what says which event a message carries, of which aggregate, and
// where among the aggregate's events it stands, of a message that Decode may
// refuse. Each version of this contract has the id, the aggregate and the
// sequence where this one has them, so a reader can keep a message of a later
// version in its place until it is upgraded.
//
// The event has no data; what else of it cannot be read is left out. False where
// id, aggregate or sequence are missing or contradict each other: such a message
// belongs to no aggregate that could be named.
//
// Where a message of this contract names two places, because its sequence is not
// the one that its version and position make, its place is the earlier of them:
// whoever applies an aggregate's messages in order then meets it before anything
// that might follow it. Decode refuses such a message.
func Place(m Message) (Event, bool) {
	r := reader{properties: m.Properties}
	e := Event{
		ID:          m.ID,
		AggregateID: m.SessionID,
		Sequence:    Sequence(r.text(attrSequence)),
		Type:        r.lenientText(attrType),
		Source:      r.lenientText(attrSource),
		Operation:   Operation(r.lenientText(attrOperation)),
		Position:    Position(r.lenientText(attrPosition)),
		TraceParent: r.traceParent(),
		ContentType: m.ContentType,
	}
	r.same(attrID, m.ID)
	r.same(attrSubject, m.SessionID)
	r.resend(&e)
	r.checkCharacters(attrID, e.ID, MaxIDLength)
	r.checkCharacters(attrSubject, e.AggregateID, MaxAggregateIDLength)
	r.checkCharacters(attrSequence, string(e.Sequence), MaxPropertyBytes)
	if r.err() != nil {
		return Event{}, false
	}
	if v := MessageVersion(m); v.Number >= 0 {
		e.Version = v
	}
	if version, _ := r.value(attrContract); version == nil || version == ContractVersion {
		e.Sequence = min(e.Sequence, r.stated(&e))
	}
	e.Term, _ = r.integer(attrTerm)
	e.Time = r.time(attrTime)
	return e, true
}

// stated is the sequence that an event's version or position makes; its own
// where it has neither, or none that can be read.
func (r *reader) stated(e *Event) Sequence {
	_, numbered := r.value(attrVersion)
	if e.Version.Known || !numbered && e.Position.problem() == "" {
		return SequenceOf(e.Version, e.Position)
	}
	return e.Sequence
}

// lenientText is a text, or nothing where there is none that can be kept.
func (r *reader) lenientText(attr string) string {
	v, _ := r.value(attr)
	s, _ := v.(string)
	var p problems
	if p.checkCharacters(attr, s, MaxPropertyBytes); p.err() != nil {
		return ""
	}
	return s
}

// same checks that an attribute, where it is there, says what its message says.
func (r *reader) same(attr, want string) {
	if v, found := r.value(attr); found && v != want {
		r.add(attr, "is not what the message says")
	}
}
