package management

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

type ruleDescription struct {
	XMLName xml.Name `xml:"RuleDescription"`
	namespaces
	Filter    filterDescription
	Action    actionDescription
	CreatedAt string
	Name      string
}

type filterDescription struct {
	Type             string  `xml:"i:type,attr"`
	CorrelationId    *string //nolint:revive // the element's name
	MessageId        *string //nolint:revive // the element's name
	To               *string
	ReplyTo          *string
	Label            *string
	SessionId        *string //nolint:revive // the element's name
	ReplyToSessionId *string //nolint:revive // the element's name
	ContentType      *string
	Properties       *keyValues
	SqlExpression    *string //nolint:revive // the element's name
	Parameters       *keyValues
}

type actionDescription struct {
	Type string `xml:"i:type,attr"`
}

type keyValues struct {
	Values []keyValue `xml:"KeyValueOfstringanyType"`
}

type keyValue struct {
	Key   string
	Value typedValue
}

type typedValue struct {
	Type   string `xml:"i:type,attr"`
	Schema string `xml:"xmlns:d6p1,attr"`
	Text   string `xml:",chardata"`
}

func ruleEntry(r *http.Request, t target, rule entity.Rule) entry {
	path := fmt.Sprintf("%s/Subscriptions/%s/Rules/%s", t.entity, t.subscription, rule.Name)
	return newEntry(r, path, rule.Name, rule.CreatedAt, rule.CreatedAt, ruleDescription{
		namespaces: newNamespaces(), Filter: describeFilter(rule.Filter), Action: actionDescription{"EmptyRuleAction"},
		CreatedAt: timestamp(rule.CreatedAt), Name: rule.Name,
	})
}

func describeFilter(f entity.Filter) filterDescription {
	always, never := "1=1", "1=0"
	switch f := f.(type) {
	case entity.FalseFilter:
		return filterDescription{Type: "FalseFilter", SqlExpression: &never}
	case entity.SQLFilter:
		return filterDescription{Type: "SqlFilter", SqlExpression: &f.Expression, Parameters: describeValues(f.Parameters)}
	case entity.CorrelationFilter:
		return filterDescription{
			Type: "CorrelationFilter", CorrelationId: f.CorrelationID, MessageId: f.MessageID, To: f.To, ReplyTo: f.ReplyTo,
			Label: f.Subject, SessionId: f.SessionID, ReplyToSessionId: f.ReplyToSessionID, ContentType: f.ContentType,
			Properties: describeValues(f.Properties),
		}
	default:
		return filterDescription{Type: "TrueFilter", SqlExpression: &always}
	}
}

// describeValues lists values by key.
func describeValues(values map[string]any) *keyValues {
	if len(values) == 0 {
		return nil
	}
	list := &keyValues{}
	for k, v := range values {
		kind, text := describeValue(v)
		list.Values = append(list.Values, keyValue{k, typedValue{"d6p1:" + kind, schemaNamespace, text}})
	}
	slices.SortFunc(list.Values, func(a, b keyValue) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// describeValue tells a value with the type that readValue takes it from.
func describeValue(v any) (kind, text string) {
	switch v := v.(type) {
	case time.Time:
		return "dateTime", v.UTC().Format(time.RFC3339Nano)
	case float32:
		return "float", strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		return "double", strconv.FormatFloat(v, 'g', -1, 64)
	}
	kind, ok := map[reflect.Kind]string{
		reflect.Bool: "boolean", reflect.Int64: "long", reflect.Int32: "int", reflect.Int16: "short", reflect.Int8: "byte",
		reflect.Uint64: "unsignedLong", reflect.Uint32: "unsignedInt", reflect.Uint16: "unsignedShort", reflect.Uint8: "unsignedByte",
	}[reflect.ValueOf(v).Kind()]
	if !ok {
		kind = "string"
	}
	return kind, fmt.Sprint(v)
}

// readRule reads a RuleDescription or DefaultRuleDescription. name is what the
// path calls it, if it does.
func readRule(d *element, name string) (entity.Rule, error) {
	rule := entity.Rule{Name: name, Filter: entity.TrueFilter{}}
	if n := d.child("Name"); n != nil && rule.Name == "" {
		rule.Name = strings.TrimSpace(n.Text)
	}
	if rule.Name == "" {
		rule.Name = entity.DefaultRule
	}
	if action := d.child("Action"); action != nil && action.kind() != "EmptyRuleAction" {
		return rule, badRequest("The action %s of rule '%s' is not supported.", action.kind(), rule.Name)
	}
	filter := d.child("Filter")
	if filter == nil {
		return rule, nil
	}
	var err error
	rule.Filter, err = readFilter(filter)
	return rule, err
}

func readFilter(f *element) (entity.Filter, error) {
	switch f.kind() {
	case "TrueFilter":
		return entity.TrueFilter{}, nil
	case "FalseFilter":
		return entity.FalseFilter{}, nil
	case "SqlFilter":
		parameters, err := readValues(f.child("Parameters"))
		expression := f.child("SqlExpression")
		if expression == nil {
			return nil, badRequest("The SqlFilter has no SqlExpression.")
		}
		return entity.SQLFilter{Expression: expression.Text, Parameters: parameters}, err
	case "CorrelationFilter":
		return readCorrelation(f)
	}
	return nil, badRequest("The filter type '%s' is not supported.", f.kind())
}

func readCorrelation(f *element) (entity.Filter, error) {
	var c entity.CorrelationFilter
	for name, to := range map[string]**string{
		"CorrelationId": &c.CorrelationID, "MessageId": &c.MessageID, "To": &c.To, "ReplyTo": &c.ReplyTo, "Label": &c.Subject,
		"SessionId": &c.SessionID, "ReplyToSessionId": &c.ReplyToSessionID, "ContentType": &c.ContentType,
	} {
		if e := f.child(name); e != nil {
			*to = &e.Text
		}
	}
	var err error
	c.Properties, err = readValues(f.child("Properties"))
	return c, err
}

func readValues(list *element) (map[string]any, error) {
	if list == nil || len(list.Children) == 0 {
		return nil, nil
	}
	values := map[string]any{}
	for _, pair := range list.Children {
		key, value := pair.child("Key"), pair.child("Value")
		if key == nil || value == nil {
			return nil, badRequest("The element %s has no Key or no Value.", pair.XMLName.Local)
		}
		v, err := readValue(value)
		if err != nil {
			return nil, badRequest("The value '%s' of '%s' is no %s.", value.Text, key.Text, value.kind())
		}
		values[key.Text] = v
	}
	return values, nil
}

// readValue reads a value of one of XML Schema's types. A decimal becomes a double.
func readValue(e *element) (any, error) {
	switch e.kind() {
	case "string":
		return e.Text, nil
	case "boolean":
		return strconv.ParseBool(e.Text)
	case "long":
		return strconv.ParseInt(e.Text, 10, 64)
	case "int":
		n, err := strconv.ParseInt(e.Text, 10, 32)
		return int32(n), err
	case "short":
		n, err := strconv.ParseInt(e.Text, 10, 16)
		return int16(n), err
	case "byte":
		n, err := strconv.ParseInt(e.Text, 10, 8)
		return int8(n), err
	case "unsignedLong":
		return strconv.ParseUint(e.Text, 10, 64)
	case "unsignedInt":
		n, err := strconv.ParseUint(e.Text, 10, 32)
		return uint32(n), err
	case "unsignedShort":
		n, err := strconv.ParseUint(e.Text, 10, 16)
		return uint16(n), err
	case "unsignedByte":
		n, err := strconv.ParseUint(e.Text, 10, 8)
		return uint8(n), err
	case "float":
		f, err := strconv.ParseFloat(e.Text, 32)
		return float32(f), err
	case "double", "decimal":
		return strconv.ParseFloat(e.Text, 64)
	case "dateTime":
		return time.Parse(time.RFC3339Nano, e.Text)
	}
	return nil, fmt.Errorf("the type %q is not known", e.kind())
}

func (h *handler) getRule(r *http.Request, t target) (any, error) {
	rules, err := h.broker.Rules(t.entity, t.subscription)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		if strings.EqualFold(rule.Name, t.rule) {
			return ruleEntry(r, t, rule), nil
		}
	}
	return nil, &apiError{http.StatusNotFound, fmt.Sprintf("The rule '%s' could not be found.", t.rule)}
}

func (h *handler) putRule(r *http.Request, t target) (any, error) {
	d, err := readDescription(r)
	if err != nil {
		return nil, err
	}
	if d.XMLName.Local != "RuleDescription" {
		return nil, badRequest("The element %s is not a RuleDescription.", d.XMLName.Local)
	}
	rule, err := readRule(d, t.rule)
	if err != nil {
		return nil, err
	}
	put := h.broker.CreateRule
	if changes(r) {
		put = h.broker.UpdateRule
	}
	rule, err = put(t.entity, t.subscription, rule)
	if err != nil {
		return nil, err
	}
	return ruleEntry(r, t, rule), nil
}

func (h *handler) deleteRule(_ *http.Request, t target) (any, error) {
	return nil, h.broker.DeleteRule(t.entity, t.subscription, t.rule)
}

func (h *handler) listRules(r *http.Request, t target) (any, error) {
	rules, err := h.broker.Rules(t.entity, t.subscription)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, rule := range rules {
		entries = append(entries, ruleEntry(r, t, rule))
	}
	return newFeed(r, "Rules", entries)
}
