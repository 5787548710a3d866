package statuspage

import (
	"context"
	"net/http"
	"time"
)

// Namespace is a Service Bus namespace. Whatever the caller did wrong is a
// *Refusal.
type Namespace interface {
	// Peek returns messages by sequence number.
	Peek(ctx context.Context, who Login, g Glance) ([]Message, error)
	Send(ctx context.Context, who Login, entity string, d Draft) error
	// Sessions returns sessions by id.
	Sessions(ctx context.Context, who Login, l SessionList) ([]Session, error)
}

// Glance says which messages to look at.
type Glance struct {
	// Entity is the path of a queue, a subscription or a dead-letter queue.
	Entity string
	// From is the least sequence number.
	From  int64
	Limit int
	// Session is nil for all.
	Session *string
}

// Message is one that lies in an entity.
type Message struct {
	// SequenceNumber is text in JSON: partitioned entities have some that
	// JavaScript's numbers cannot hold.
	SequenceNumber int64     `json:"sequence_number,string"`
	State          string    `json:"state"`
	EnqueuedAt     time.Time `json:"enqueued_at"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"`
	LockedUntil    time.Time `json:"locked_until,omitzero"`
	// DeliveryCount counts deliveries that failed, as the header on the wire does.
	DeliveryCount   uint32  `json:"delivery_count"`
	MessageID       string  `json:"message_id,omitempty"`
	SessionID       *string `json:"session_id,omitempty"`
	PartitionKey    string  `json:"partition_key,omitempty"`
	Subject         string  `json:"subject,omitempty"`
	To              string  `json:"to,omitempty"`
	ReplyTo         string  `json:"reply_to,omitempty"`
	CorrelationID   string  `json:"correlation_id,omitempty"`
	ContentType     string  `json:"content_type,omitempty"`
	ContentEncoding string  `json:"content_encoding,omitempty"`

	DeadLetterSource      string `json:"dead_letter_source,omitempty"`
	DeadLetterReason      string `json:"dead_letter_reason,omitempty"`
	DeadLetterDescription string `json:"dead_letter_description,omitempty"`

	Properties map[string]Property `json:"properties"`
	Body       []byte              `json:"-"`
	Content    Content             `json:"body"`
}

// Property is an application property; the value is text whatever the type.
type Property struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Bounds of a page of messages or sessions.
const (
	messagesDefault = 20
	messagesMost    = 200
	sessionsDefault = 50
	sessionsMost    = 1000
	numberMost      = 1<<63 - 1
)

// messages is a page of them.
type messages struct {
	Messages []Message `json:"messages"`
	// More tells that there are more behind; From is where they begin.
	More bool  `json:"more"`
	From int64 `json:"next_from,string,omitempty"`
}

func (s *Server) peekMessages(r *http.Request) (int, any, error) {
	p := &parameters{r: r}
	p.onlyKnown("entity", "from", "limit", "session")
	g := Glance{
		Entity: p.entity(), From: p.number("from", 0, 0, numberMost),
		Limit: int(p.number("limit", messagesDefault, 1, messagesMost)) + 1, Session: p.optional("session"),
	}
	if p.err != nil {
		return 0, nil, p.err
	}
	found, err := s.Namespace.Peek(r.Context(), loginOf(r), g)
	if err != nil {
		return 0, nil, err
	}
	page, size := messages{Messages: []Message{}}, 0
	for i, m := range found {
		if size += len(m.Body); i > 0 && size > pageBytes || i == g.Limit-1 {
			page.More, page.From = true, m.SequenceNumber
			break
		}
		m.Content = contentOf(m.Body, m.ContentType, m.ContentEncoding)
		page.Messages = append(page.Messages, m)
	}
	return http.StatusOK, page, nil
}

// entity is the path that a request is about.
func (p *parameters) entity() string {
	if p.text("entity") == "" {
		p.fail("entity must say which: orders, changes/Subscriptions/projector, orders/$DeadLetterQueue")
	}
	return p.text("entity")
}

// SessionList says which sessions to list.
type SessionList struct {
	Entity string
	// After leaves out the sessions up to this id; nil leaves out none.
	After *string
	Limit int
	// Held leaves out sessions that nobody holds.
	Held bool
}

// Session is one session of an entity.
type Session struct {
	ID          string    `json:"id"`
	Messages    int       `json:"messages"`
	Locked      bool      `json:"locked"`
	LockedUntil time.Time `json:"locked_until,omitzero"`
	// Holder is the name that its receiver gave.
	Holder string `json:"holder,omitempty"`
}

// sessions is a page of them.
type sessions struct {
	Sessions []Session `json:"sessions"`
	// More tells that there are more behind the last.
	More bool `json:"more"`
}

func (s *Server) listSessions(r *http.Request) (int, any, error) {
	p := &parameters{r: r}
	p.onlyKnown("entity", "after", "limit", "held")
	l := SessionList{
		Entity: p.entity(), After: p.optional("after"),
		Limit: int(p.number("limit", sessionsDefault, 1, sessionsMost)) + 1, Held: p.yes("held"),
	}
	if p.err != nil {
		return 0, nil, p.err
	}
	found, err := s.Namespace.Sessions(r.Context(), loginOf(r), l)
	if err != nil {
		return 0, nil, err
	}
	page := sessions{Sessions: found}
	if len(found) == l.Limit {
		page.Sessions, page.More = found[:l.Limit-1], true
	}
	return http.StatusOK, page, nil
}
