package emulatorconfig_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/emulatorconfig"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestRead_ReadUnderstandsTheEmulatorsFile(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/Config.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := emulatorconfig.Read(file)
	if err != nil {
		t.Fatalf("Read: got error %v, want none", err)
	}
	contentType, label := "application/json", "OrderPlaced"
	want := emulatorconfig.Config{
		Namespace: "sbemulatorns",
		Queues: []emulatorconfig.Queue{{Name: "orders", Properties: entity.QueueProperties{
			DeadLetteringOnMessageExpiration: true, DefaultMessageTimeToLive: time.Hour,
			DuplicateDetectionHistoryTimeWindow: 20 * time.Second, LockDuration: time.Minute, MaxDeliveryCount: 3,
			RequiresDuplicateDetection: true,
		}}},
		Topics: []emulatorconfig.Topic{{
			Name: "changes",
			Properties: entity.TopicProperties{
				DefaultMessageTimeToLive: 14 * 24 * time.Hour, DuplicateDetectionHistoryTimeWindow: 10 * time.Minute,
				RequiresDuplicateDetection: true, EnablePartitioning: true,
			},
			Subscriptions: []emulatorconfig.Subscription{
				{Name: "projector", Properties: entity.SubscriptionProperties{
					LockDuration: 30 * time.Second, MaxDeliveryCount: 10, RequiresSession: true,
				}},
				{Name: "by-rule", Rules: []entity.Rule{
					{Name: "correlated", Filter: entity.CorrelationFilter{
						ContentType: &contentType, Subject: &label,
						Properties: map[string]any{"region": "eu", "level": int32(3), "size": int64(5_000_000_000), "vip": true, "rate": 0.5},
					}},
					{Name: "by-sql", Filter: entity.SQLFilter{Expression: "sys.Label = 'OrderPaid' AND amount > 100"}},
				}},
			},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Read:\n got %+v\nwant %+v", got, want)
	}
}

// within puts JSON into an otherwise empty file.
func withinNamespace(fields string) string {
	return fmt.Sprintf(`{"UserConfig": {"Namespaces": [{"Name": "n", %s}]}}`, fields)
}

func TestRead_ReadRefusesWithTheJSONPath(t *testing.T) {
	t.Parallel()
	const (
		queue        = `"Queues": [{"Name": "q", "Properties": {%s}}]`
		subscription = `"Topics": [{"Name": "t", "Subscriptions": [{"Name": "s", %s}]}]`
		inQueue      = "UserConfig.Namespaces[0].Queues[0].Properties."
		inRule       = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties."
	)
	rule := func(properties string) string {
		return withinNamespace(fmt.Sprintf(subscription, fmt.Sprintf(`"Rules": [{"Name": "r", "Properties": {%s}}]`, properties)))
	}
	for name, test := range map[string]struct{ file, want string }{
		"an empty file":                    {"", "not a JSON object"},
		"an array":                         {"[]", "not a JSON object"},
		"text after the end":               {`{"UserConfig": {"Namespaces": [{"Name": "n"}]}} x`, "goes on after"},
		"no UserConfig":                    {"{}", "UserConfig: missing"},
		"an unknown field at the top":      {`{"UserConfig": {"Namespaces": [{"Name": "n"}]}, "Extra": 1}`, "Extra: unknown field"},
		"no namespace":                     {`{"UserConfig": {}}`, "UserConfig.Namespaces: no namespace"},
		"two namespaces":                   {`{"UserConfig": {"Namespaces": [{"Name": "a"}, {"Name": "b"}]}}`, "2 namespaces"},
		"a namespace that is a string":     {`{"UserConfig": {"Namespaces": ["a"]}}`, "UserConfig.Namespaces[0]: not an object"},
		"queues that are no array":         {withinNamespace(`"Queues": {}`), "UserConfig.Namespaces[0].Queues: not an array"},
		"a queue without a name":           {withinNamespace(`"Queues": [{}]`), "Queues[0].Name: missing"},
		"an unknown property":              {withinNamespace(fmt.Sprintf(queue, `"LockTime": "PT1M"`)), inQueue + "LockTime: unknown field"},
		"a property of another type":       {withinNamespace(fmt.Sprintf(queue, `"RequiresSession": "yes"`)), inQueue + "RequiresSession: not true or false"},
		"a duration that is none":          {withinNamespace(fmt.Sprintf(queue, `"LockDuration": "1 minute"`)), inQueue + "LockDuration: "},
		"a duration of zero":               {withinNamespace(fmt.Sprintf(queue, `"LockDuration": "PT0S"`)), inQueue + "LockDuration: a duration of zero"},
		"a count of zero":                  {withinNamespace(fmt.Sprintf(queue, `"MaxDeliveryCount": 0`)), inQueue + "MaxDeliveryCount: "},
		"a count that is a fraction":       {withinNamespace(fmt.Sprintf(queue, `"MaxDeliveryCount": 1.5`)), inQueue + "MaxDeliveryCount: "},
		"a lock longer than the service's": {withinNamespace(fmt.Sprintf(queue, `"LockDuration": "PT6M"`)), "Queues[0]: com.microsoft:argument-error: LockDuration"},
		"two queues of one name":           {withinNamespace(`"Queues": [{"Name": "q"}, {"Name": "Q"}]`), "Queues[1]: com.microsoft:entity-already-exists"},
		"a rule without a type":            {rule(``), inRule + "FilterType: missing"},
		"a rule of an unknown type":        {rule(`"FilterType": "Regex"`), inRule + `FilterType: "Regex"`},
		"an action":                        {rule(`"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}, "Action": {}`), inRule + "Action: "},
		"a SQL filter without expression":  {rule(`"FilterType": "Sql"`), inRule + "SqlFilter.SqlExpression: missing"},
		"a SQL filter that is not valid":   {rule(`"FilterType": "Sql", "SqlFilter": {"SqlExpression": "a ="}`), "Subscriptions[0]: com.microsoft:argument-error: The filter of rule 'r'"},
		"a correlation on an object":       {rule(`"FilterType": "Correlation", "CorrelationFilter": {"Properties": {"a": {}}}`), inRule + "CorrelationFilter.Properties.a: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := emulatorconfig.Read(strings.NewReader(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Read: got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestRead_ReadReportsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := emulatorconfig.Read(strings.NewReader(withinNamespace(`"Queues": [{"Name": "a", "X": 1}, {"Name": "b", "Y": 1}], "Z": 1`)))
	for _, want := range []string{"Queues[0].X: ", "Queues[1].Y: ", "Namespaces[0].Z: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read: got error %v, want one with %q", err, want)
		}
	}
}

func TestRead_ApplyMakesTheDefaultNamespaceOnce(t *testing.T) {
	t.Parallel()
	b, err := broker.New(broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time everything is there
		if err := emulatorconfig.Default().Apply(b); err != nil {
			t.Fatalf("Apply: got error %v, want none", err)
		}
	}
	topic, err := b.Topic("changes")
	if err != nil || !topic.Properties.EnablePartitioning || !topic.Properties.RequiresDuplicateDetection || topic.Subscriptions != 2 {
		t.Errorf("Topic: got %+v, %v, want it partitioned, with duplicate detection and 2 subscriptions", topic, err)
	}
	sub, err := b.Subscription("changes", "projector")
	if err != nil || !sub.Properties.RequiresSession || sub.Properties.LockDuration != 30*time.Second || sub.Properties.MaxDeliveryCount != 10 {
		t.Errorf("Subscription: got %+v, %v, want sessions, 30s and 10 deliveries", sub, err)
	}
}

func FuzzRead(f *testing.F) {
	sample, err := os.ReadFile("testdata/Config.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	f.Add(withinNamespace(`"Queues": [{"Name": "q"}]`))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := emulatorconfig.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		b, err := broker.New(broker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(b); err != nil {
			t.Fatalf("Apply of a file that Read took: got error %v", err)
		}
	})
}
