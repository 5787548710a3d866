package contract

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of Service Bus that an event must keep. Characters are UTF-16 code
// units, as the service counts them.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
const (
	// MaxIDLength bounds Event.ID in characters (the message id).
	MaxIDLength = 128
	// MaxAggregateIDLength bounds Event.AggregateID in characters (the session id and partition key).
	MaxAggregateIDLength = 128
	// MaxPropertyBytes bounds one application property's value.
	MaxPropertyBytes = 32 << 10
	// MaxPropertiesBytes bounds everything in a message but its body.
	MaxPropertiesBytes = 64 << 10
)

// propertiesOverhead is an allowance for what a message's properties take
// besides the values whose length an event decides: names, numbers, framing.
const propertiesOverhead = 2 << 10

// Unix seconds of the years that an RFC 3339 time can write: 0000 to 9999.
const (
	minUnixTime = -62_167_219_200
	maxUnixTime = 253_402_300_799
)

// FieldError is a field that breaks the contract. Field is named as it travels:
// a message part (messageId, sessionId, body, …) or a CloudEvents attribute.
type FieldError struct {
	Field   string
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Validate reports every field that breaks the contract, each as a
// *FieldError, joined; nil when there is none.
func (e *Event) Validate() error {
	var p problems
	p.check(e)
	return p.err()
}

// problems gathers what is wrong with an event or a message, one *FieldError a
// field: the first found is nearest to the cause.
type problems struct {
	found []*FieldError
}

func (p *problems) err() error {
	errs := make([]error, len(p.found))
	for i, err := range p.found {
		errs[i] = err
	}
	return errors.Join(errs...)
}

func (p *problems) add(field, format string, args ...any) {
	if !p.has(field) {
		p.found = append(p.found, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
}

func (p *problems) has(field string) bool {
	return slices.ContainsFunc(p.found, func(err *FieldError) bool { return err.Field == field })
}

func (p *problems) check(e *Event) {
	p.checkCharacters(attrID, e.ID, MaxIDLength)
	p.checkCharacters(attrSubject, e.AggregateID, MaxAggregateIDLength)
	p.checkCharacters(attrSource, e.Source, MaxPropertyBytes)
	p.checkCharacters(attrType, e.Type, MaxPropertyBytes)
	p.checkBytes(attrSource, e.Source)
	p.checkBytes(attrType, e.Type)
	if !e.Operation.valid() {
		p.add(attrOperation, "is %s, not one of insert, update, replace, delete, snapshot", quote(string(e.Operation)))
	}
	if problem := e.Position.problem(); problem != "" {
		p.add(attrPosition, "%s", problem)
	}
	if e.Version.Known && e.Version.Number < 0 {
		p.add(attrVersion, "is %d, below 0", e.Version.Number)
	}
	// A wrong version or position is the cause of a sequence that does not fit.
	if !p.has(attrVersion) && !p.has(attrPosition) && !e.Sequence.follows(e.Version, e.Position) {
		p.add(attrSequence, "is %s, but version and position make it %s",
			quote(string(e.Sequence)), quote(string(SequenceOf(e.Version, e.Position))))
	}
	if e.Term < 0 {
		p.add(attrTerm, "is %d, below 0", e.Term)
	}
	if unix := e.Time.Unix(); unix < minUnixTime || unix > maxUnixTime {
		p.add(attrTime, "is outside the years 0000 to 9999")
	}
	if e.DataSchema != "" {
		p.checkCharacters(attrDataSchema, e.DataSchema, MaxPropertyBytes)
		p.checkBytes(attrDataSchema, e.DataSchema)
	}
	p.checkResend(e)
	p.checkData(e)
	if size := propertiesBytes(e); size > MaxPropertiesBytes {
		p.add(partProperties, "take about %d bytes, more than %d", size, MaxPropertiesBytes)
	}
}

func (p *problems) checkData(e *Event) {
	switch e.ContentType {
	case ContentTypeJSON, ContentTypeBSON:
		if len(e.Data) == 0 {
			p.add(partBody, "is empty, but the content type is %s", e.ContentType)
		}
	case "":
		if len(e.Data) > 0 {
			p.add(partContentType, "is empty, but there is data")
		}
	default:
		p.add(partContentType, "is %s, not %s or %s", quote(e.ContentType), ContentTypeJSON, ContentTypeBSON)
	}
}

// checkCharacters checks a required text: CloudEvents 1.0.2 section 3.1, type
// String, and its length in UTF-16 code units.
func (p *problems) checkCharacters(field, value string, limit int) {
	units := 0
	for i, r := range value {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(value[i:], string(utf8.RuneError)):
			p.add(field, "is not valid UTF-8")
			return
		case unicode.IsControl(r) || noncharacter(r):
			p.add(field, "has the character %U, which CloudEvents does not allow", r)
			return
		case r > 0xFFFF:
			units++
		}
		units++
	}
	switch {
	case units == 0:
		p.add(field, "is empty")
	case units > limit:
		p.add(field, "has %d characters, more than %d", units, limit)
	}
}

func (p *problems) checkBytes(field, value string) {
	if len(value) > MaxPropertyBytes {
		p.add(field, "has %d bytes, more than %d", len(value), MaxPropertyBytes)
	}
}

// noncharacter tells the code points that Unicode sets aside for no character.
func noncharacter(r rune) bool {
	return r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF
}

// propertiesBytes estimates, from above, what a message's properties take. Ids,
// type and aggregate travel as message properties and as attributes.
func propertiesBytes(e *Event) int {
	return propertiesOverhead + 2*len(e.ID) + 3*len(e.AggregateID) + 2*len(e.Type) +
		len(e.Source) + len(e.Sequence) + len(e.Position) + len(e.DataSchema) + resendBytes(e)
}

func resendBytes(e *Event) int {
	if e.Resend.ID == "" {
		return 0
	}
	return len(e.ID) + 4*len(e.Resend.ID) + len(e.Resend.Group)
}

// quote quotes the beginning of a value that may be hostile and long.
func quote(s string) string {
	const most = 64
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
}
