package emulatorconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// maxBytes bounds a file.
const maxBytes = 4 << 20

// Read reads a Config.json. The error joins all its problems.
func Read(r io.Reader) (Config, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	if len(text) > maxBytes {
		return Config{}, fmt.Errorf("the configuration is larger than %d bytes", maxBytes)
	}
	decoder := json.NewDecoder(strings.NewReader(strings.TrimPrefix(string(text), "\uFEFF")))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return Config{}, fmt.Errorf("the configuration is not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("the configuration goes on after its JSON object")
	}
	var problems []error
	root := &object{fields: fields, problems: &problems}
	c := root.config()
	if len(problems) == 0 {
		problems = c.rehearse()
	}
	return c, errors.Join(problems...)
}

func (o *object) config() Config {
	user := o.sub("UserConfig")
	o.done()
	if o.fields["UserConfig"] == nil {
		o.problem("UserConfig", "missing")
	}
	namespaces := user.list("Namespaces")
	user.sub("Logging").get("Type") // of the emulator's own log
	user.done()
	switch len(namespaces) {
	case 0:
		user.problem("Namespaces", "no namespace")
		return Config{}
	case 1:
	default:
		user.problem("Namespaces", "%d namespaces where one is supported", len(namespaces))
	}
	return namespaces[0].namespace()
}

func (o *object) namespace() Config {
	c := Config{Namespace: o.name()}
	for _, q := range o.list("Queues") {
		c.Queues = append(c.Queues, q.queue())
	}
	for _, t := range o.list("Topics") {
		c.Topics = append(c.Topics, t.topic())
	}
	o.done()
	return c
}

func (o *object) queue() Queue {
	q := Queue{Name: o.name()}
	p := o.sub("Properties")
	o.done()
	q.Properties = entity.QueueProperties{
		LockDuration:                        p.duration("LockDuration"),
		MaxDeliveryCount:                    p.integer("MaxDeliveryCount"),
		RequiresSession:                     p.flag("RequiresSession"),
		RequiresDuplicateDetection:          p.flag("RequiresDuplicateDetection"),
		DuplicateDetectionHistoryTimeWindow: p.duration("DuplicateDetectionHistoryTimeWindow"),
		DefaultMessageTimeToLive:            p.duration("DefaultMessageTimeToLive"),
		DeadLetteringOnMessageExpiration:    p.flag("DeadLetteringOnMessageExpiration"),
		EnablePartitioning:                  p.flag("EnablePartitioning"),
		ForwardTo:                           p.text("ForwardTo"),
		ForwardDeadLetteredMessagesTo:       p.text("ForwardDeadLetteredMessagesTo"),
	}
	p.done()
	return q
}

func (o *object) topic() Topic {
	t := Topic{Name: o.name()}
	p := o.sub("Properties")
	t.Properties = entity.TopicProperties{
		RequiresDuplicateDetection:          p.flag("RequiresDuplicateDetection"),
		DuplicateDetectionHistoryTimeWindow: p.duration("DuplicateDetectionHistoryTimeWindow"),
		DefaultMessageTimeToLive:            p.duration("DefaultMessageTimeToLive"),
		EnablePartitioning:                  p.flag("EnablePartitioning"),
	}
	p.done()
	for _, s := range o.list("Subscriptions") {
		t.Subscriptions = append(t.Subscriptions, s.subscription())
	}
	o.done()
	return t
}

func (o *object) subscription() Subscription {
	s := Subscription{Name: o.name()}
	p := o.sub("Properties")
	s.Properties = entity.SubscriptionProperties{
		LockDuration:                     p.duration("LockDuration"),
		MaxDeliveryCount:                 p.integer("MaxDeliveryCount"),
		RequiresSession:                  p.flag("RequiresSession"),
		DefaultMessageTimeToLive:         p.duration("DefaultMessageTimeToLive"),
		DeadLetteringOnMessageExpiration: p.flag("DeadLetteringOnMessageExpiration"),
		ForwardTo:                        p.text("ForwardTo"),
		ForwardDeadLetteredMessagesTo:    p.text("ForwardDeadLetteredMessagesTo"),
	}
	p.done()
	for _, r := range o.list("Rules") {
		s.Rules = append(s.Rules, r.rule())
	}
	o.done()
	return s
}

func (o *object) rule() entity.Rule {
	r := entity.Rule{Name: o.name()}
	p := o.sub("Properties")
	o.done()
	filterType := p.text("FilterType")
	sql, correlation := p.sub("SqlFilter"), p.sub("CorrelationFilter")
	if _, ok := p.get("Action"); ok {
		p.problem("Action", "actions of rules are not supported")
	}
	p.done()
	switch filterType {
	case "Sql":
		r.Filter = sql.sqlFilter()
	case "Correlation":
		r.Filter = correlation.correlationFilter()
	case "":
		p.problem("FilterType", "missing")
	default:
		p.problem("FilterType", "%q is neither Sql nor Correlation", filterType)
	}
	return r
}

func (o *object) sqlFilter() entity.SQLFilter {
	expression := o.text("SqlExpression")
	o.done()
	if expression == "" {
		o.problem("SqlExpression", "missing")
	}
	return entity.SQLFilter{Expression: expression}
}

func (o *object) correlationFilter() entity.CorrelationFilter {
	f := entity.CorrelationFilter{
		MessageID:        o.optional("MessageId"),
		SessionID:        o.optional("SessionId"),
		Subject:          o.optional("Label"),
		To:               o.optional("To"),
		ReplyTo:          o.optional("ReplyTo"),
		ReplyToSessionID: o.optional("ReplyToSessionId"),
		CorrelationID:    o.optional("CorrelationId"),
		ContentType:      o.optional("ContentType"),
	}
	if properties, ok := o.get("Properties"); ok {
		f.Properties = o.as("Properties", properties).properties()
	}
	o.done()
	return f
}

// properties are application properties: strings, booleans and numbers, a whole
// one as an int where it fits and else as a long.
func (o *object) properties() map[string]any {
	values := make(map[string]any, len(o.fields))
	for name, v := range o.fields {
		switch v := v.(type) {
		case string, bool:
			values[name] = v
		case json.Number:
			if n, err := v.Int64(); err == nil {
				values[name] = n
				if int64(int32(n)) == n {
					values[name] = int32(n)
				}
				continue
			}
			f, err := v.Float64()
			if err != nil {
				o.problem(name, "a number out of range")
			}
			values[name] = f
		default:
			o.problem(name, "not a string, number or boolean")
		}
	}
	return values
}
