package contract

import "time"

// EncodeOptions say how an event's body is written.
type EncodeOptions struct {
	// CompressAbove is the size of data in bytes above which the body is
	// compressed with gzip, where that makes it smaller. 0 never compresses.
	CompressAbove int
}

// attributes is how many properties a message has at most.
const attributes = 17

// Encode writes the event as a message. It returns the joined *FieldErrors of
// an event that breaks the contract. The message's body may share memory with
// e.Data.
func Encode(e Event, o EncodeOptions) (Message, error) {
	if err := e.Validate(); err != nil {
		return Message{}, err
	}
	m := Message{
		ID:           e.messageID(),
		SessionID:    e.AggregateID,
		PartitionKey: e.AggregateID,
		Subject:      e.Type,
		ContentType:  e.ContentType,
		Body:         e.Data,
		Properties:   properties(&e),
	}
	if o.CompressAbove > 0 && len(e.Data) > o.CompressAbove {
		if packed := compress(e.Data); len(packed) < len(e.Data) {
			m.Body, m.ContentEncoding = packed, encodingGzip
		}
	}
	return m, nil
}

func properties(e *Event) map[string]any {
	p := make(map[string]any, attributes)
	p[prefix+attrSpecVersion] = specVersion
	p[prefix+attrContract] = ContractVersion
	p[prefix+attrID] = e.messageID()
	p[prefix+attrSource] = e.Source
	p[prefix+attrType] = e.Type
	p[prefix+attrSubject] = e.AggregateID
	p[prefix+attrOperation] = string(e.Operation)
	p[prefix+attrSequence] = string(e.Sequence)
	p[prefix+attrPosition] = string(e.Position)
	p[prefix+attrTerm] = e.Term
	if !e.Time.IsZero() {
		p[prefix+attrTime] = e.Time.UTC().Format(time.RFC3339Nano)
	}
	if e.Version.Known {
		p[prefix+attrVersion] = e.Version.Number
	}
	if validTraceParent(e.TraceParent) {
		p[prefix+attrTraceParent] = e.TraceParent
	}
	if e.DataSchema != "" {
		p[prefix+attrDataSchema] = e.DataSchema
	}
	if e.Resend.ID != "" {
		p[prefix+attrResend] = e.Resend.ID
		p[prefix+attrResendOf] = e.ID
		if e.Resend.Group != "" {
			p[prefix+attrResendGroup] = e.Resend.Group
		}
	}
	return p
}
