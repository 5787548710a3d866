package contract

import "strings"

// Resend is one by which changes are sent again that were sent before. Id and
// sequence of such an event are those that it always had, so to whoever has it, it
// is a repeat.
type Resend struct {
	// ID names the resend; empty for none.
	ID string
	// Group is whom it is for: all others may pass it by. Empty is everybody.
	Group string
}

// resendMark stands between the id of a change and that of a resend. It is none of
// the characters of Identity.MessageID.
const resendMark = "~"

// messageID is the id of an event's message. A topic that drops duplicates would
// drop a resent message under the change's own id, and a reader of this contract
// takes both ids of a message for one.
func (e *Event) messageID() string {
	if e.Resend.ID == "" {
		return e.ID
	}
	return e.ID + resendMark + e.Resend.ID
}

// ResendOf reads for which resend a message was sent, of any message: nothing else
// of it is looked at.
func ResendOf(m Message) Resend {
	r := reader{properties: m.Properties}
	id, _ := r.value(attrResend)
	group, _ := r.value(attrResendGroup)
	var of Resend
	of.ID, _ = id.(string)
	of.Group, _ = group.(string)
	return of
}

// For reports whether whoever is of a group is meant. What is not resent is meant
// for all.
func (r Resend) For(group string) bool { return r.ID == "" || r.Group == "" || r.Group == group }

// resend takes the ids of change and resend out of that of the message, where the
// message is resent.
func (r *reader) resend(e *Event) {
	if _, found := r.value(attrResend); !found {
		return
	}
	e.Resend.ID, e.Resend.Group = r.text(attrResend), r.optionalText(attrResendGroup)
	of := r.text(attrResendOf)
	if own, found := strings.CutSuffix(e.ID, resendMark+e.Resend.ID); !found || own != of {
		r.add(attrResendOf, "is %s, but with the resend %s the id is %s", quote(of), quote(e.Resend.ID), quote(e.ID))
	}
	e.ID = of
}

// checkResend checks what a resent event says beside the rest.
func (p *problems) checkResend(e *Event) {
	if e.Resend == (Resend{}) {
		return
	}
	p.checkCharacters(attrResend, e.Resend.ID, MaxIDLength)
	p.checkCharacters(partMessageID, e.messageID(), MaxIDLength)
	if e.Resend.Group != "" {
		p.checkCharacters(attrResendGroup, e.Resend.Group, MaxAggregateIDLength)
	}
}

// Validate reports what of a resend a message cannot carry.
func (r Resend) Validate() error {
	var p problems
	p.checkResend(&Event{Resend: r})
	return p.err()
}
