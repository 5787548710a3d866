package expect

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

// Resend is what a message says of having been sent again: the id of the resend, and
// the group that it is for. The zero Resend is that of a message that says nothing of it.
type Resend struct{ ID, Group string }

// Properties of a message that was sent again.
const (
	resendID    = prefix + "resend"
	resendOf    = prefix + "resendof"
	resendGroup = prefix + "resendgroup"
)

// ResendOf reads what a message says of having been sent again.
func ResendOf(m *azservicebus.ReceivedMessage) Resend {
	id, _ := m.ApplicationProperties[resendID].(string)
	group, _ := m.ApplicationProperties[resendGroup].(string)
	return Resend{ID: id, Group: group}
}

// original takes what a resend adds out of the parts of a message. Where that is not
// as it must be, the parts stay as they are, and are no event's.
func original(m *azservicebus.ReceivedMessage, seen *Message) {
	of, told := m.ApplicationProperties[resendOf].(string)
	if r := ResendOf(m); r.ID == "" || !told || of == "" || m.MessageID != of+"~"+r.ID || seen[ID] != property(m.MessageID) {
		return
	}
	seen[MessageID], seen[ID] = of, property(of)
	plain := make(map[string]any, len(m.ApplicationProperties))
	for name, value := range m.ApplicationProperties {
		if name != resendID && name != resendOf && name != resendGroup {
			plain[name] = value
		}
	}
	seen[Others] = others(m, plain)
}
