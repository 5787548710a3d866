package management_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/management"
)

// request makes one over plain HTTP.
func request(t *testing.T, s server, method, path, body string, header http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.address()+path, strings.NewReader(body))
	must(t, err)
	maps.Copy(r.Header, header)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(r)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(text)
}

// entry is a request's body.
func entry(kind, fields string) string {
	return fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">`+
		`<%[1]s xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">%[2]s</%[1]s>`+
		`</content></entry>`, kind, fields)
}

func TestHTTP_BadRequestsAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	_, err := b.CreateTopic("topic", entity.TopicProperties{})
	must(t, err)
	_, err = b.CreateSubscription("topic", "sub", entity.SubscriptionProperties{})
	must(t, err)
	update := http.Header{"If-Match": {"*"}}
	rule := func(fields string) string { return entry("RuleDescription", fields) }
	for name, test := range map[string]struct {
		method, path, body string
		header             http.Header
		status             int
		want               string
	}{
		"no XML":                     {"PUT", "/q", "nothing", nil, 400, "not XML"},
		"no entry":                   {"PUT", "/q", "<x/>", nil, 400, "not an Atom entry"},
		"text behind the entry":      {"PUT", "/q", entry("QueueDescription", "") + "<x/>", nil, 400, "goes on"},
		"another description":        {"PUT", "/q", entry("EventHubDescription", ""), nil, 400, "EventHubDescription"},
		"a body that is too large":   {"PUT", "/q", entry("QueueDescription", strings.Repeat(" ", 1<<20)), nil, 413, "larger"},
		"an unknown element":         {"PUT", "/q", entry("QueueDescription", "<LockTime>PT1M</LockTime>"), nil, 400, "LockTime"},
		"a duration that is none":    {"PUT", "/q", entry("QueueDescription", "<LockDuration>1m</LockDuration>"), nil, 400, "LockDuration"},
		"a number that is none":      {"PUT", "/q", entry("QueueDescription", "<MaxDeliveryCount>many</MaxDeliveryCount>"), nil, 400, "MaxDeliveryCount"},
		"a boolean that is none":     {"PUT", "/q", entry("QueueDescription", "<RequiresSession>maybe</RequiresSession>"), nil, 400, "RequiresSession"},
		"a value out of range":       {"PUT", "/q", entry("QueueDescription", "<LockDuration>PT6M</LockDuration>"), nil, 400, "LockDuration"},
		"express":                    {"PUT", "/q", entry("QueueDescription", "<EnableExpress>true</EnableExpress>"), nil, 400, "EnableExpress"},
		"authorization rules":        {"PUT", "/q", entry("QueueDescription", "<AuthorizationRules><AuthorizationRule/></AuthorizationRules>"), nil, 400, "AuthorizationRules"},
		"forwarding":                 {"PUT", "/q", entry("QueueDescription", "<ForwardTo>other</ForwardTo>"), nil, 400, "ForwardTo"},
		"a change of what is fixed":  {"PUT", "/topic", entry("TopicDescription", "<EnablePartitioning>true</EnablePartitioning>"), update, 400, "EnablePartitioning"},
		"a change of a missing one":  {"PUT", "/q", entry("QueueDescription", ""), update, 404, "could not be found"},
		"a topic for a subscription": {"PUT", "/topic/Subscriptions/s", entry("TopicDescription", ""), nil, 400, "SubscriptionDescription"},
		"a rule with an action":      {"PUT", "/topic/Subscriptions/sub/Rules/r", rule(`<Action i:type="SqlRuleAction"/>`), nil, 400, "SqlRuleAction"},
		"a rule of another type":     {"PUT", "/topic/Subscriptions/sub/Rules/r", rule(`<Filter i:type="RegexFilter"/>`), nil, 400, "RegexFilter"},
		"a SQL rule without SQL":     {"PUT", "/topic/Subscriptions/sub/Rules/r", rule(`<Filter i:type="SqlFilter"/>`), nil, 400, "SqlExpression"},
		"a parameter without value":  {"PUT", "/topic/Subscriptions/sub/Rules/r", rule(`<Filter i:type="CorrelationFilter"><Properties><x><Key>k</Key></x></Properties></Filter>`), nil, 400, "no Value"},
		"a value of another type":    {"PUT", "/topic/Subscriptions/sub/Rules/r", rule(`<Filter i:type="CorrelationFilter"><Properties><x><Key>k</Key><Value i:type="x:int">z</Value></x></Properties></Filter>`), nil, 400, "is no int"},
		"a value that does not fit":  {"PUT", "/topic/Subscriptions/sub/Rules/r", rule(`<Filter i:type="CorrelationFilter"><Properties><x><Key>k</Key><Value i:type="x:int">5000000000</Value></x></Properties></Filter>`), nil, 400, "is no int"},
		"a page that is none":        {"GET", "/$Resources/Queues?$top=x", "", nil, 400, "$top"},
		"a method for a list":        {"PUT", "/$Resources/Queues", "", nil, 405, "PUT"},
		"a method for an entity":     {"POST", "/q", "", nil, 405, "POST"},
		"a subscription of no topic": {"GET", "/none/Subscriptions/s", "", nil, 404, "could not be found"},
		"an unknown part of a path":  {"DELETE", "/topic/Subscriptions/sub/Things/x", "", nil, 404, "could not be found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, text := request(t, s, test.method, test.path, test.body, test.header)
			if status != test.status || !strings.Contains(text, test.want) || !strings.HasPrefix(text, "<Error>") {
				t.Errorf("got %d %s, want %d with %q", status, text, test.status, test.want)
			}
		})
	}
}

func TestHTTP_ValuesOfARuleKeepTheirTypes(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	_, err := b.CreateTopic("topic", entity.TopicProperties{})
	must(t, err)
	_, err = b.CreateSubscription("topic", "sub", entity.SubscriptionProperties{})
	must(t, err)
	values := []struct{ kind, text string }{
		{"long", "5"},
		{"long", "5000000000"},
		{"int", "5"},
		{"short", "-5"},
		{"byte", "-5"},
		{"unsignedLong", "18446744073709551615"},
		{"unsignedInt", "5"},
		{"unsignedShort", "5"},
		{"unsignedByte", "255"},
		{"double", "2.1"},
		{"float", "2.1"},
		{"boolean", "true"},
		{"string", "5"},
		{"dateTime", "2026-01-02T03:04:05Z"},
	}
	pairs := ""
	for i, v := range values {
		pairs += fmt.Sprintf(`<KeyValueOfstringanyType><Key>k%d</Key><Value i:type="x:%s" xmlns:x="http://www.w3.org/2001/XMLSchema">%s</Value></KeyValueOfstringanyType>`, i, v.kind, v.text)
	}
	const path = "/topic/Subscriptions/sub/Rules/"
	status, put := request(t, s, "PUT", path+"r", entry("RuleDescription", `<Filter i:type="CorrelationFilter"><Properties>`+pairs+`</Properties></Filter>`), nil)
	if status != http.StatusCreated {
		t.Fatalf("put: got %d %s", status, put)
	}
	_, got := request(t, s, "GET", path+"r", "", nil)
	_, list := request(t, s, "GET", path, "", nil)
	for i, v := range values {
		want := fmt.Sprintf(`<Key>k%d</Key><Value i:type="d6p1:%s" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">%s</Value>`, i, v.kind, v.text)
		for name, text := range map[string]string{"put": put, "get": got, "list": list} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: got %s, want %s in it", name, text, want)
			}
		}
	}
}

func TestHTTP_PlainHTTPIsServedOnTheSamePort(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	_, err := b.CreateQueue("queue", entity.QueueProperties{})
	must(t, err)
	status, text := request(t, s, "GET", "/QUEUE", "", nil)
	if status != http.StatusOK || !strings.Contains(text, "<d2p1:ActiveMessageCount>0</d2p1:ActiveMessageCount>") {
		t.Errorf("got %d %s, want the queue with its counts", status, text)
	}
	status, text = request(t, s, "GET", "/$certificate", "", nil)
	if status != http.StatusOK || text != string(s.CertificatePEM()) {
		t.Errorf("certificate: got %d %s, want the server's", status, text)
	}
}

func FuzzPut(f *testing.F) {
	f.Add("/q", entry("QueueDescription", "<LockDuration>PT1M</LockDuration>"), false)
	f.Add("/topic", entry("TopicDescription", "<Status>Disabled</Status>"), true)
	f.Add("/topic/Subscriptions/s", entry("SubscriptionDescription", `<DefaultRuleDescription><Filter i:type="FalseFilter"/></DefaultRuleDescription>`), false)
	f.Add("/topic/Subscriptions/sub/Rules/", entry("RuleDescription", `<Filter i:type="SqlFilter"><SqlExpression>a=1</SqlExpression></Filter>`), false)
	f.Fuzz(func(t *testing.T, path, body string, change bool) {
		b, err := broker.New(broker.Config{})
		must(t, err)
		_, err = b.CreateTopic("topic", entity.TopicProperties{})
		must(t, err)
		_, err = b.CreateSubscription("topic", "sub", entity.SubscriptionProperties{})
		must(t, err)
		r := httptest.NewRequest(http.MethodPut, "/", bytes.NewReader([]byte(body)))
		r.URL.Path = "/" + path
		if change {
			r.Header.Set("If-Match", "*")
		}
		w := httptest.NewRecorder()
		management.NewHandler(b, nil, zerolog.Nop()).ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("PUT %q %q: got status %d %s", path, body, w.Code, w.Body)
		}
	})
}
