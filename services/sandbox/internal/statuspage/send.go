package statuspage

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Draft is a message to be sent.
type Draft struct {
	MessageID     string
	SessionID     *string
	PartitionKey  string
	Subject       string
	To, ReplyTo   string
	CorrelationID string
	ContentType   string
	// Properties are texts, booleans, int64 and float64.
	Properties  map[string]any
	TimeToLive  time.Duration // 0: the entity's default
	ScheduledAt time.Time     // zero: at once
	Body        []byte
}

// sending is the body of POST /messages.
type sending struct {
	MessageID     string          `json:"message_id"`
	SessionID     *string         `json:"session_id"`
	PartitionKey  string          `json:"partition_key"`
	Subject       string          `json:"subject"`
	To            string          `json:"to"`
	ReplyTo       string          `json:"reply_to"`
	CorrelationID string          `json:"correlation_id"`
	ContentType   string          `json:"content_type"`
	Properties    map[string]any  `json:"properties"`
	TimeToLive    string          `json:"time_to_live"`
	ScheduledAt   time.Time       `json:"scheduled_at"`
	Body          json.RawMessage `json:"body"`
	BodyHex       string          `json:"body_hex"`
}

func (s *Server) sendMessage(r *http.Request) (int, any, error) {
	p := &parameters{r: r}
	p.onlyKnown("entity")
	entity := p.entity()
	text, err := bodyOf(r)
	if err != nil {
		return 0, nil, err
	}
	draft := p.draft(text)
	if p.err != nil {
		return 0, nil, p.err
	}
	if err := s.Namespace.Send(r.Context(), loginOf(r), entity, draft); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, map[string]string{"sent_to": entity}, nil
}

func (p *parameters) draft(text []byte) Draft {
	var given sending
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		p.fail("read the message: %s", err)
		return Draft{}
	}
	if _, err := decoder.Token(); err != io.EOF {
		p.fail("read the message: there is more than one JSON value")
	}
	d := Draft{
		MessageID: given.MessageID, SessionID: given.SessionID, PartitionKey: given.PartitionKey, Subject: given.Subject,
		To: given.To, ReplyTo: given.ReplyTo, CorrelationID: given.CorrelationID, ContentType: given.ContentType,
		Properties: given.Properties, ScheduledAt: given.ScheduledAt, TimeToLive: p.lifetime(given.TimeToLive),
	}
	p.numbers(d.Properties)
	p.body(&d, given)
	return d
}

// lifetimeMost is the longest that the header of a message can say.
const lifetimeMost = (1<<32 - 1) * time.Millisecond

func (p *parameters) lifetime(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > lifetimeMost {
		p.fail(`time_to_live must be a time such as "90s", from 1ms to %s, and is %q`, lifetimeMost, text)
	}
	return d
}

// numbers makes integers and floats of a message's properties.
func (p *parameters) numbers(properties map[string]any) {
	for name, value := range properties {
		switch v := value.(type) {
		case string, bool:
		case json.Number:
			if n, err := v.Int64(); err == nil {
				properties[name] = n
			} else if f, err := v.Float64(); err == nil {
				properties[name] = f
			} else {
				p.fail("property %q is no number that a message can hold: %s", name, v)
			}
		default:
			p.fail("property %q must be a text, a number or a boolean", name)
		}
	}
}

// body sends a JSON string as its text and any other JSON as it is written.
func (p *parameters) body(d *Draft, given sending) {
	var text string
	switch {
	case given.BodyHex != "" && given.Body != nil:
		p.fail("body and body_hex are both given")
	case given.BodyHex != "":
		decoded, err := hex.DecodeString(given.BodyHex)
		if err != nil {
			p.fail("body_hex: %s", err)
		}
		d.Body = decoded
	case json.Unmarshal(given.Body, &text) == nil && string(given.Body) != "null":
		d.Body = []byte(text)
	default:
		d.Body = given.Body
		if given.Body != nil && d.ContentType == "" {
			d.ContentType = "application/json"
		}
	}
}
