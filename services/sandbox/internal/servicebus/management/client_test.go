package management_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/gateway"
	"changerelay/services/sandbox/internal/servicebus/management"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the API behind a gateway.
type server struct{ *gateway.Gateway }

func (s server) address() string { return s.Addr(0).String() }

// serve runs a server for a test on a namespace of its own.
func serve(t *testing.T, change ...func(*management.Config)) (*broker.Broker, server) {
	t.Helper()
	b, err := broker.New(broker.Config{Namespace: "sandbox"})
	must(t, err)
	g, err := gateway.New(gateway.Config{Addresses: []string{"127.0.0.1:0"}, Log: zerolog.Nop()})
	must(t, err)
	config := management.Config{Listener: g.HTTP(), CertificatePEM: g.CertificatePEM(), Log: zerolog.Nop()}
	for _, f := range change {
		f(&config)
	}
	s := management.New(b, config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	for _, run := range []func(context.Context) error{g.Run, s.Run} {
		go func() { done <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
	})
	return b, server{g}
}

// newClient is the official client, over HTTPS with the server's certificate.
func newClient(t *testing.T, s server) *admin.Client {
	t.Helper()
	return newClientWithKey(t, s, "RootManageSharedAccessKey", "SAS_KEY_VALUE")
}

func newClientWithKey(t *testing.T, s server, name, secret string) *admin.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.CertificatePEM()) {
		t.Fatal("CertificatePEM: got no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := admin.NewClientFromConnectionString(
		fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true;", s.address(), name, secret),
		&admin.ClientOptions{ClientOptions: azcore.ClientOptions{
			Transport: &http.Client{Transport: transport},
			Retry:     policy.RetryOptions{MaxRetries: -1},
		}})
	must(t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

func wantStatus(t *testing.T, err error, status int) {
	t.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != status {
		t.Fatalf("got error %v, want status %d", err, status)
	}
}

func send(t *testing.T, b *broker.Broker, path string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(t, b.Send(t.Context(), path, []*entity.Message{{MessageID: id, Payload: []byte("1234567890")}}))
	}
}

func TestClient_QueuesAsTheOfficialClientSeesThem(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	client := newClient(t, s)
	want := admin.QueueProperties{
		LockDuration:                        new("PT45S"),
		MaxSizeInMegabytes:                  to.Ptr[int32](4096),
		RequiresDuplicateDetection:          new(true),
		RequiresSession:                     new(true),
		DefaultMessageTimeToLive:            new("PT6H"),
		DeadLetteringOnMessageExpiration:    new(true),
		DuplicateDetectionHistoryTimeWindow: new("PT4H"),
		MaxDeliveryCount:                    to.Ptr[int32](100),
		EnableBatchedOperations:             new(false),
		Status:                              to.Ptr(admin.EntityStatusSendDisabled),
		AutoDeleteOnIdle:                    new("PT10M"),
		EnablePartitioning:                  new(true),
		UserMetadata:                        new("some <metadata>"),
		MaxMessageSizeInKilobytes:           to.Ptr[int64](512),
	}
	created, err := client.CreateQueue(t.Context(), "dir/queue", &admin.CreateQueueOptions{Properties: &want})
	must(t, err)
	want.MaxSizeInMegabytes = to.Ptr[int32](16 * 4096) // of all partitions
	got, err := client.GetQueue(t.Context(), "dir/queue", nil)
	must(t, err)
	for _, p := range []admin.QueueProperties{created.QueueProperties, got.QueueProperties} {
		if p.AuthorizationRules = nil; !reflect.DeepEqual(p, want) {
			t.Errorf("queue:\n got %+v\nwant %+v", p, want)
		}
	}
	_, err = client.CreateQueue(t.Context(), "dir/queue", nil)
	wantStatus(t, err, http.StatusConflict)

	changed := got.QueueProperties
	changed.MaxDeliveryCount = to.Ptr[int32](5)
	changed.Status = to.Ptr(admin.EntityStatusActive)
	updated, err := client.UpdateQueue(t.Context(), "dir/queue", changed, nil)
	must(t, err)
	if *updated.MaxDeliveryCount != 5 || *updated.LockDuration != "PT45S" {
		t.Errorf("updated: got %d deliveries and a lock of %s, want 5 and PT45S", *updated.MaxDeliveryCount, *updated.LockDuration)
	}
	if q, err := b.Queue("dir/queue"); err != nil || q.Properties.MaxDeliveryCount != 5 {
		t.Errorf("broker: got %+v, %v, want 5 deliveries", q, err)
	}
	_, err = client.DeleteQueue(t.Context(), "dir/queue", nil)
	must(t, err)
	got, err = client.GetQueue(t.Context(), "dir/queue", nil)
	if got != nil || err != nil {
		t.Errorf("a deleted queue: got %v, %v, want nothing", got, err)
	}
	_, err = client.UpdateQueue(t.Context(), "dir/queue", changed, nil)
	wantStatus(t, err, http.StatusNotFound)
	_, err = client.DeleteQueue(t.Context(), "dir/queue", nil)
	wantStatus(t, err, http.StatusNotFound)
}

func TestClient_RuntimePropertiesCount(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	client := newClient(t, s)
	_, err := client.CreateQueue(t.Context(), "queue", nil)
	must(t, err)
	send(t, b, "queue", "active", "dead", "deferred")
	_, err = b.Schedule(t.Context(), "queue", []*entity.Message{{ScheduledEnqueueTime: time.Now().Add(time.Hour), Payload: []byte("1234567890")}})
	must(t, err)
	r, err := b.OpenReceiver(t.Context(), "queue", broker.ReceiverOptions{})
	must(t, err)
	ds, err := r.Receive(t.Context(), 3)
	must(t, err)
	must(t, r.Settle(ds[1].LockToken, entity.DeadLetter{}))
	must(t, r.Settle(ds[2].LockToken, entity.Defer{}))

	got, err := client.GetQueueRuntimeProperties(t.Context(), "queue", nil)
	must(t, err)
	if got.ActiveMessageCount != 2 || got.DeadLetterMessageCount != 1 || got.ScheduledMessageCount != 1 || got.TotalMessageCount != 4 || got.SizeInBytes != 40 {
		t.Errorf("queue: got %+v, want 2 active, 1 dead, 1 scheduled of 4 in 40 bytes", got)
	}
	if got.CreatedAt.IsZero() || got.UpdatedAt.IsZero() || got.AccessedAt.Before(got.CreatedAt) {
		t.Errorf("times: got %+v", got)
	}
}

func TestClient_TopicsAndSubscriptionsAsTheOfficialClientSeesThem(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	client := newClient(t, s)
	wantTopic := admin.TopicProperties{
		MaxSizeInMegabytes:                  to.Ptr[int32](2048),
		RequiresDuplicateDetection:          new(true),
		DefaultMessageTimeToLive:            new("P1D"),
		DuplicateDetectionHistoryTimeWindow: new("PT10M"),
		EnableBatchedOperations:             new(true),
		Status:                              to.Ptr(admin.EntityStatusActive),
		AutoDeleteOnIdle:                    new("P10675199DT2H48M5.4775807S"),
		EnablePartitioning:                  new(true),
		SupportOrdering:                     new(false),
		UserMetadata:                        new("meta"),
		MaxMessageSizeInKilobytes:           to.Ptr[int64](256),
	}
	_, err := client.CreateTopic(t.Context(), "changes", &admin.CreateTopicOptions{Properties: &wantTopic})
	must(t, err)
	wantTopic.MaxSizeInMegabytes = to.Ptr[int32](16 * 2048) // of all partitions
	topic, err := client.GetTopic(t.Context(), "changes", nil)
	must(t, err)
	if topic.AuthorizationRules = nil; !reflect.DeepEqual(topic.TopicProperties, wantTopic) {
		t.Errorf("topic:\n got %+v\nwant %+v", topic.TopicProperties, wantTopic)
	}

	wantSub := admin.SubscriptionProperties{
		LockDuration:                                    new("PT30S"),
		RequiresSession:                                 new(false),
		DefaultMessageTimeToLive:                        new("PT7M"),
		DeadLetteringOnMessageExpiration:                new(true),
		EnableDeadLetteringOnFilterEvaluationExceptions: new(false),
		MaxDeliveryCount:                                to.Ptr[int32](11),
		Status:                                          to.Ptr(admin.EntityStatusActive),
		AutoDeleteOnIdle:                                new("P10675199DT2H48M5.4775807S"),
		EnableBatchedOperations:                         new(false),
		UserMetadata:                                    new("meta"),
	}
	_, err = client.CreateSubscription(t.Context(), "changes", "sub", &admin.CreateSubscriptionOptions{Properties: &wantSub})
	must(t, err)
	sub, err := client.GetSubscription(t.Context(), "changes", "sub", nil)
	must(t, err)
	if !reflect.DeepEqual(sub.SubscriptionProperties, wantSub) {
		t.Errorf("subscription:\n got %+v\nwant %+v", sub.SubscriptionProperties, wantSub)
	}
	_, err = client.CreateSubscription(t.Context(), "none", "sub", nil)
	wantStatus(t, err, http.StatusNotFound)

	send(t, b, "changes", "m")
	runtime, err := client.GetSubscriptionRuntimeProperties(t.Context(), "changes", "sub", nil)
	must(t, err)
	if runtime.ActiveMessageCount != 1 || runtime.TotalMessageCount != 1 {
		t.Errorf("subscription: got %+v, want 1 message", runtime)
	}
	topicRuntime, err := client.GetTopicRuntimeProperties(t.Context(), "changes", nil)
	must(t, err)
	if topicRuntime.SubscriptionCount != 1 || topicRuntime.SizeInBytes != 10 || topicRuntime.SQLFilterCount != 1 {
		t.Errorf("topic: got %+v, want 1 subscription with 1 SQL filter and 10 bytes", topicRuntime)
	}

	changed := sub.SubscriptionProperties
	changed.LockDuration = new("PT1M")
	updated, err := client.UpdateSubscription(t.Context(), "changes", "sub", changed, nil)
	must(t, err)
	if *updated.LockDuration != "PT1M" {
		t.Errorf("lock duration: got %s, want PT1M", *updated.LockDuration)
	}
	wantTopic.UserMetadata = new("other")
	updatedTopic, err := client.UpdateTopic(t.Context(), "changes", wantTopic, nil)
	must(t, err)
	if *updatedTopic.UserMetadata != "other" {
		t.Errorf("user metadata: got %s, want other", *updatedTopic.UserMetadata)
	}
	_, err = client.DeleteSubscription(t.Context(), "changes", "sub", nil)
	must(t, err)
	sub, err = client.GetSubscription(t.Context(), "changes", "sub", nil)
	if sub != nil || err != nil {
		t.Errorf("a deleted subscription: got %v, %v, want nothing", sub, err)
	}
	_, err = client.DeleteTopic(t.Context(), "changes", nil)
	must(t, err)
	topic, err = client.GetTopic(t.Context(), "changes", nil)
	if topic != nil || err != nil {
		t.Errorf("a deleted topic: got %v, %v, want nothing", topic, err)
	}
}

func TestClient_RulesAsTheOfficialClientSeesThem(t *testing.T) {
	t.Parallel()
	_, s := serve(t)
	client := newClient(t, s)
	_, err := client.CreateTopic(t.Context(), "changes", nil)
	must(t, err)
	_, err = client.CreateSubscription(t.Context(), "changes", "sub", &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{DefaultRule: &admin.RuleProperties{Name: "first", Filter: &admin.FalseFilter{}}},
	})
	must(t, err)
	values := map[string]any{
		"string": "a & b", "int": int64(-5), "double": 2.5, "bool": true, "time": time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC),
	}
	sqlValues := map[string]any{}
	for k, v := range values {
		sqlValues["@"+k] = v
	}
	rules := map[string]admin.RuleFilter{
		"first": &admin.FalseFilter{},
		"true":  &admin.TrueFilter{},
		"sql":   &admin.SQLFilter{Expression: "a < @int AND b = @string OR c > @double", Parameters: sqlValues},
		"correlation": &admin.CorrelationFilter{
			ApplicationProperties: values, ContentType: new("c"), CorrelationID: new("co"), MessageID: new("m"),
			ReplyTo: new("r"), ReplyToSessionID: new("rs"), SessionID: new("s"), Subject: new("su"), To: new("t"),
		},
	}
	for name, filter := range rules {
		if name != "first" {
			created, err := client.CreateRule(t.Context(), "changes", "sub", &admin.CreateRuleOptions{Name: &name, Filter: filter})
			must(t, err)
			wantRule(t, created.RuleProperties, name, filter)
		}
		got, err := client.GetRule(t.Context(), "changes", "sub", name, nil)
		must(t, err)
		wantRule(t, got.RuleProperties, name, filter)
	}
	updated, err := client.UpdateRule(t.Context(), "changes", "sub", admin.RuleProperties{Name: "true", Filter: &admin.SQLFilter{Expression: "x = 1"}})
	must(t, err)
	wantRule(t, updated.RuleProperties, "true", &admin.SQLFilter{Expression: "x = 1"})

	_, err = client.CreateRule(t.Context(), "changes", "sub", &admin.CreateRuleOptions{Name: new("bad"), Filter: &admin.SQLFilter{Expression: "x ="}})
	wantStatus(t, err, http.StatusBadRequest)
	_, err = client.CreateRule(t.Context(), "changes", "sub", &admin.CreateRuleOptions{Name: new("act"), Action: &admin.SQLAction{Expression: "SET a = 1"}})
	wantStatus(t, err, http.StatusBadRequest)
	_, err = client.CreateRule(t.Context(), "changes", "sub", &admin.CreateRuleOptions{Name: new("sql"), Filter: &admin.TrueFilter{}})
	wantStatus(t, err, http.StatusConflict)
	_, err = client.DeleteRule(t.Context(), "changes", "sub", "true", nil)
	must(t, err)
	gone, err := client.GetRule(t.Context(), "changes", "sub", "true", nil)
	if gone != nil || err != nil {
		t.Errorf("a deleted rule: got %v, %v, want nothing", gone, err)
	}
	unnamed, err := client.CreateRule(t.Context(), "changes", "sub", &admin.CreateRuleOptions{})
	must(t, err)
	wantRule(t, unnamed.RuleProperties, "$Default", &admin.TrueFilter{})
}

func wantRule(t *testing.T, got admin.RuleProperties, name string, filter admin.RuleFilter) {
	t.Helper()
	if got.Name != name || !reflect.DeepEqual(got.Filter, filter) || got.Action != nil {
		t.Errorf("rule: got %s %+v %v, want %s %+v", got.Name, got.Filter, got.Action, name, filter)
	}
}

func TestClient_ListsComeInPages(t *testing.T) {
	t.Parallel()
	_, s := serve(t)
	client := newClient(t, s)
	for i := range 5 {
		_, err := client.CreateQueue(t.Context(), fmt.Sprint("queue", i), nil)
		must(t, err)
		_, err = client.CreateTopic(t.Context(), fmt.Sprint("topic", i), nil)
		must(t, err)
		_, err = client.CreateSubscription(t.Context(), "topic0", fmt.Sprint("sub", i), nil)
		must(t, err)
		_, err = client.CreateRule(t.Context(), "topic0", "sub0", &admin.CreateRuleOptions{Name: new(fmt.Sprint("rule", i))})
		must(t, err)
	}
	var got []string
	for p := client.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 2}); p.More(); {
		page, err := p.NextPage(t.Context())
		must(t, err)
		for _, q := range page.Queues {
			got = append(got, q.QueueName)
		}
	}
	for p := client.NewListTopicsRuntimePropertiesPager(&admin.ListTopicsRuntimePropertiesOptions{MaxPageSize: 2}); p.More(); {
		page, err := p.NextPage(t.Context())
		must(t, err)
		for _, q := range page.TopicRuntimeProperties {
			got = append(got, q.TopicName)
		}
	}
	for p := client.NewListSubscriptionsRuntimePropertiesPager("topic0", &admin.ListSubscriptionsRuntimePropertiesOptions{MaxPageSize: 5}); p.More(); {
		page, err := p.NextPage(t.Context())
		must(t, err)
		for _, q := range page.SubscriptionRuntimeProperties {
			got = append(got, q.SubscriptionName)
		}
	}
	for p := client.NewListRulesPager("topic0", "sub0", nil); p.More(); {
		page, err := p.NextPage(t.Context())
		must(t, err)
		for _, r := range page.Rules {
			got = append(got, r.Name)
		}
	}
	want := "[queue0 queue1 queue2 queue3 queue4 topic0 topic1 topic2 topic3 topic4 sub0 sub1 sub2 sub3 sub4 $Default rule0 rule1 rule2 rule3 rule4]"
	if fmt.Sprint(got) != want {
		t.Errorf("listed:\n got %v\nwant %s", got, want)
	}
}

// Journals of releases that did not tell an int of a rule from a long hold both under the tag of a long.
func TestClient_ListsRulesOfAnOlderJournal(t *testing.T) {
	t.Parallel()
	const (
		settings = "\x02{}"
		zeroes   = "\x00\x00\x00"
		topic    = "\x02\x01t\x01" + settings + zeroes
		unset    = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		byFields = "\x01c\x00\x02" + unset + "\x01\x05level\x05\x06"
		bySQL    = "\x01q\x00\x03\x06a = @p\x01\x02@p\x05\x07"
		journal  = topic + "\x03\x01t\x01s\x02" + settings + zeroes + "\x02" + byFields + bySQL
	)
	b, s := serve(t)
	must(t, b.Restore([]byte(journal)))
	page, err := newClient(t, s).NewListRulesPager("t", "s", nil).NextPage(t.Context())
	must(t, err)
	var got []admin.RuleFilter
	for _, r := range page.Rules {
		got = append(got, r.Filter)
	}
	want := []admin.RuleFilter{
		&admin.CorrelationFilter{ApplicationProperties: map[string]any{"level": int64(3)}},
		&admin.SQLFilter{Expression: "a = @p", Parameters: map[string]any{"@p": int64(-4)}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got filters %v, want %v", got, want)
	}
}

func TestClient_NamespaceProperties(t *testing.T) {
	t.Parallel()
	_, s := serve(t)
	got, err := newClient(t, s).GetNamespaceProperties(t.Context(), nil)
	must(t, err)
	if got.Name != "sandbox" || got.SKU != "Standard" || got.CreatedTime.IsZero() {
		t.Errorf("namespace: got %+v, want sandbox, Standard and a time", got)
	}
}
