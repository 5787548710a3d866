package entity

import (
	"fmt"
	"strings"

	"changerelay/services/sandbox/internal/servicebus/sqlfilter"
)

// CompileFilter makes the test of a filter. An error says what is wrong with an
// SQL expression.
func CompileFilter(f Filter) (func(*Message) bool, error) {
	switch f := f.(type) {
	case TrueFilter:
		return func(*Message) bool { return true }, nil
	case FalseFilter:
		return func(*Message) bool { return false }, nil
	case CorrelationFilter:
		return f.match, nil
	case SQLFilter:
		compiled, err := sqlfilter.Compile(f.Expression, f.Parameters)
		if err != nil {
			return nil, err
		}
		return func(m *Message) bool { return compiled.Match(filtered{m}) }, nil
	}
	return nil, fmt.Errorf("a filter of type %T is not known", f)
}

// match tells whether the message equals every field that is set.
func (f CorrelationFilter) match(m *Message) bool {
	session := m.SessionID
	for _, field := range []struct{ want, got *string }{
		{f.MessageID, &m.MessageID},
		{f.Subject, &m.Subject},
		{f.To, &m.To},
		{f.ReplyTo, &m.ReplyTo},
		{f.ReplyToSessionID, &m.ReplyToSessionID},
		{f.CorrelationID, &m.CorrelationID},
		{f.ContentType, &m.ContentType},
		{f.SessionID, session},
	} {
		if field.want != nil && (field.got == nil || *field.want != *field.got) {
			return false
		}
	}
	for name, want := range f.Properties {
		got, ok := m.Properties[name]
		if !ok || !sameValue(want, got) {
			return false
		}
	}
	return true
}

// filtered is a message as SQL filters see it.
type filtered struct{ *Message }

// System returns a broker property, nil when it is not set.
func (m filtered) System(name string) any {
	switch name {
	case "SessionId":
		if m.SessionID == nil {
			return nil
		}
		return *m.SessionID
	case "ScheduledEnqueueTimeUtc":
		if m.ScheduledEnqueueTime.IsZero() {
			return nil
		}
		return m.ScheduledEnqueueTime
	}
	text := map[string]string{
		"ContentType": m.ContentType, "CorrelationId": m.CorrelationID, "Label": m.Subject, "MessageId": m.MessageID,
		"ReplyTo": m.ReplyTo, "ReplyToSessionId": m.ReplyToSessionID, "To": m.To, "PartitionKey": m.PartitionKey,
	}[name]
	if text == "" {
		return nil
	}
	return text
}

// User returns an application property by its name in any case.
func (m filtered) User(name string) any {
	if v, ok := m.Properties[name]; ok {
		return v
	}
	for known, v := range m.Properties {
		if strings.EqualFold(known, name) {
			return v
		}
	}
	return nil
}
