package amqpserver

import (
	"context"
	"fmt"
	"strings"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Descriptors of rules in the answer to enumerate-rules.
const (
	descRuleDescription   = uint64(0x0000_0137_0000_0004)
	descEmptyAction       = uint64(0x0000_0137_0000_0005)
	descSQLFilter         = uint64(0x0000_0137_0000_0006)
	descTrueFilter        = uint64(0x0000_0137_0000_0007)
	descFalseFilter       = uint64(0x0000_0137_0000_0008)
	descCorrelationFilter = uint64(0x0000_0137_0000_0009)
)

// subscription splits the entity's path into topic and subscription.
func (m *management) subscription() (topic, name string, err error) {
	const middle = "/subscriptions/"
	at := strings.Index(strings.ToLower(m.entity), middle)
	if at < 0 {
		return "", "", &amqp.Error{
			Condition:   amqp.ConditionNotAllowed,
			Description: fmt.Sprintf("Rules belong to a subscription, and '%s' is none.", m.entity),
		}
	}
	return m.entity[:at], m.entity[at+len(middle):], nil
}

func (m *management) addRule(_ context.Context, req *request) (response, error) {
	topic, name, err := m.subscription()
	if err != nil {
		return response{}, err
	}
	description, isMap := req.field("rule-description").(amqp.Map)
	if !isMap {
		return response{}, argument("rule-description", "a map")
	}
	filter, err := filterOf(description)
	if err != nil {
		return response{}, err
	}
	if action, _ := description.Get("sql-rule-action").(amqp.Map); action.String("expression") != "" {
		return response{}, &amqp.Error{Condition: amqp.ConditionNotImplemented, Description: "Rule actions are not supported."}
	}
	rule := entity.Rule{Name: req.text("rule-name"), Filter: filter}
	if _, err := m.broker().CreateRule(topic, name, rule); err != nil {
		return response{}, err
	}
	return ok(nil), nil
}

// filterOf reads one of sql-filter and correlation-filter.
func filterOf(description amqp.Map) (entity.Filter, error) {
	if sql, isMap := description.Get("sql-filter").(amqp.Map); isMap {
		return entity.SQLFilter{Expression: sql.String("expression")}, nil
	}
	m, isMap := description.Get("correlation-filter").(amqp.Map)
	if !isMap {
		return nil, argument("rule-description", "a map with sql-filter or correlation-filter")
	}
	text := func(key string) *string {
		if s, isText := amqp.AsString(m.Get(key)); isText {
			return &s
		}
		return nil
	}
	properties, _ := m.Get("properties").(amqp.Map)
	return entity.CorrelationFilter{
		CorrelationID:    text("correlation-id"),
		MessageID:        text("message-id"),
		To:               text("to"),
		ReplyTo:          text("reply-to"),
		Subject:          text("label"),
		SessionID:        text("session-id"),
		ReplyToSessionID: text("reply-to-session-id"),
		ContentType:      text("content-type"),
		Properties:       propertiesOf(properties),
	}, nil
}

func (m *management) removeRule(_ context.Context, req *request) (response, error) {
	topic, name, err := m.subscription()
	if err != nil {
		return response{}, err
	}
	if err := m.broker().DeleteRule(topic, name, req.text("rule-name")); err != nil {
		return response{}, err
	}
	return ok(nil), nil
}

func (m *management) enumerateRules(_ context.Context, req *request) (response, error) {
	topic, name, err := m.subscription()
	if err != nil {
		return response{}, err
	}
	skip, err := req.integer("skip")
	if err != nil {
		return response{}, err
	}
	top, err := req.integer("top")
	if err != nil {
		return response{}, err
	}
	rules, err := m.broker().Rules(topic, name)
	if err != nil {
		return response{}, err
	}
	rules = rules[min(int(max(skip, 0)), len(rules)):]
	rules = rules[:min(int(max(top, 0)), len(rules))]
	if len(rules) == 0 {
		return noContent(), nil
	}
	list := make([]any, 0, len(rules))
	for _, r := range rules {
		list = append(list, amqp.Map{{Key: "rule-description", Value: describeRule(r)}})
	}
	return ok(amqp.Map{{Key: "rules", Value: list}}), nil
}

func describeRule(r entity.Rule) amqp.Described {
	action := amqp.Described{Descriptor: descEmptyAction, Value: []any{}}
	return amqp.Described{Descriptor: descRuleDescription, Value: []any{describeFilter(r.Filter), action, r.Name, r.CreatedAt}}
}

func describeFilter(f entity.Filter) amqp.Described {
	switch f := f.(type) {
	case entity.FalseFilter:
		return amqp.Described{Descriptor: descFalseFilter, Value: []any{}}
	case entity.SQLFilter:
		return amqp.Described{Descriptor: descSQLFilter, Value: []any{f.Expression, int32(20)}}
	case entity.CorrelationFilter:
		return amqp.Described{Descriptor: descCorrelationFilter, Value: []any{
			textOrNil(f.CorrelationID), textOrNil(f.MessageID), textOrNil(f.To), textOrNil(f.ReplyTo), textOrNil(f.Subject),
			textOrNil(f.SessionID), textOrNil(f.ReplyToSessionID), textOrNil(f.ContentType), f.Properties,
		}}
	}
	return amqp.Described{Descriptor: descTrueFilter, Value: []any{}}
}

func textOrNil(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}
