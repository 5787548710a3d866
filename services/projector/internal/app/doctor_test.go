package app_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/sandboxtest"
)

// examined is what projector doctor --json finds, and could not ask, as lines of
// text. Everything that it says is looked through for secrets.
func examined(t *testing.T, servers *sandboxtest.Endpoints) (found, unasked string, err error) {
	t.Helper()
	var stdout, plain, stderr bytes.Buffer
	reach := azcore.ClientOptions{Transport: &http.Client{Transport: trusting(t, servers.ManagementURL)}}
	err = command.Examine(t.Context(), &stdout, true, reach)
	var said struct {
		Findings []struct{ Subject, Severity, Problem, Fix string }
		Unasked  []struct{ Subject, What, Reason, Right string } `json:"not_examined"`
	}
	if jsonErr := json.Unmarshal(stdout.Bytes(), &said); jsonErr != nil {
		t.Fatalf("doctor says %q and %q: %v", &stdout, &stderr, jsonErr)
	}
	for _, f := range said.Findings {
		found += f.Severity + ": " + f.Subject + " " + f.Problem + "\n"
		if f.Fix == "" {
			t.Errorf("%q has no fix", f.Problem)
		}
	}
	for _, u := range said.Unasked {
		unasked += u.Subject + " " + u.What + ": " + u.Right + "\n"
	}
	if (len(said.Findings) > 0) != (err != nil) {
		t.Errorf("got %d findings and error %v", len(said.Findings), err)
	}
	_ = command.Examine(t.Context(), &plain, false, reach) // says the same again
	for _, f := range said.Findings {
		if !strings.Contains(plain.String(), f.Problem) || !strings.Contains(plain.String(), f.Fix) {
			t.Errorf("as text: got %q, want %q and %q in it", &plain, f.Problem, f.Fix)
		}
	}
	for _, secret := range []string{"runsecret", "deploysecret", "listensecret", "SAS_KEY_VALUE"} {
		if strings.Contains(stdout.String()+plain.String()+stderr.String(), secret) {
			t.Errorf("the doctor gives %q away:\n%s\n%s", secret, &stdout, &plain)
		}
	}
	return found, unasked, err
}

// trusting trusts the sandbox's certificate.
func trusting(t *testing.T, management string) *http.Transport {
	t.Helper()
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, management+"/$certificate", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: plain}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	certificate, err := io.ReadAll(response.Body)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("no certificate (%v) in %q", err, certificate)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// management is a client of the management of the shared broker.
func management(t *testing.T) *admin.Client {
	t.Helper()
	management, err := admin.NewClientFromConnectionString(servers.ServiceBus, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: trusting(t, servers.ManagementURL)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return management
}

// layOut makes a topic with a subscription that is sound, and another without
// sessions, which is called plain.
func layOut(t *testing.T, topic string) *admin.Client {
	t.Helper()
	management := management(t)
	yes, no, never := true, false, new("P10675199DT2H48M5.4775807S")
	if _, err := management.CreateTopic(t.Context(), topic, &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
		RequiresDuplicateDetection: &yes, DuplicateDetectionHistoryTimeWindow: new("PT10M"), DefaultMessageTimeToLive: never,
	}}); err != nil {
		t.Fatal(err)
	}
	for name, sessions := range map[string]*bool{"projector": &yes, "plain": &no} {
		if _, err := management.CreateSubscription(t.Context(), topic, name, &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
			RequiresSession: sessions, LockDuration: new("PT1M"),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	return management
}

func wantAll(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, says := range want {
		if !strings.Contains(got, says) {
			t.Errorf("got\n%swant %q", got, says)
		}
	}
}

func TestDoctor_TheDoctorFindsWhatIsWrongWithTheRealEntities(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	environ(t, servers, "doctor", servers.MongoURI, database)
	t.Setenv("TOMBSTONE_TTL", "30m")
	for _, collection := range []string{"parked_messages", "skipped_events"} {
		if _, err := client.Database(database).Collection(collection).InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	found, unasked, _ := examined(t, servers)
	wantAll(t, found,
		`warning: subscription "projector" locks sessions for 10s`, "without a trace", "fault: subscription \"projector\" lets messages live for 1h0m0s, and TOMBSTONE_TTL",
		`topic "doctor" has no duplicate detection`, `lacks indexes on ["projector_processes" "apply_attempts" "applied_positions" "skipped_events" "latest"]`, "0 halted aggregates and 1 parked messages", "1 records of skipped events")
	if unasked != "" {
		t.Errorf("not examined: %s", unasked)
	}

	topic := "sound-" + database
	management := layOut(t, topic)
	for _, collection := range []string{"parked_messages", "skipped_events"} {
		if err := client.Database(database).Collection(collection).Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SERVICEBUS_TOPIC", topic)
	if lines, err := runCommand(t, "setup"); err != nil {
		t.Fatalf("setup: %v and %v", lines, err)
	}
	if found, unasked, err := examined(t, servers); err != nil || unasked != "" {
		t.Errorf("sound entities: got\n%s%sand %v", found, unasked, err)
	}
	t.Setenv("SERVICEBUS_MANAGEMENT_URL", servers.ManagementURL)
	if lines, err := runCommand(t, "doctor", "--json"); err != nil || len(lines) != 1 {
		t.Errorf("sound entities, asked at SERVICEBUS_MANAGEMENT_URL: got %v and %v", lines, err)
	}
	t.Setenv("SERVICEBUS_MANAGEMENT_URL", "")

	t.Setenv("TOMBSTONE_TTL", "1h")
	t.Setenv("SERVICEBUS_SUBSCRIPTION", "plain")
	if _, err := management.CreateRule(t.Context(), topic, "plain", &admin.CreateRuleOptions{
		Name: new("some"), Filter: &admin.SQLFilter{Expression: "sys.Label = 'a'"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := management.DeleteRule(t.Context(), topic, "plain", "$Default", nil); err != nil {
		t.Fatal(err)
	}
	found, _, _ = examined(t, servers)
	wantAll(t, found, "does not require sessions", "changes are filtered away", `tidies "latest" after 30m0s`)

	t.Setenv("SERVICEBUS_SUBSCRIPTION", "nowhere")
	found, _, _ = examined(t, servers)
	wantAll(t, found, `subscription "nowhere" cannot be examined`, "there is no such entity")
}

// A subscription may leave out what is sent again for other groups, as docs/operations.md says, and
// nothing else: not even what fills a version of its own group.
func TestDoctor_AFilterForOneGroupIsSound(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	topic := "filtered-" + database
	management := layOut(t, topic)
	environ(t, servers, topic, servers.MongoURI, database)
	t.Setenv("READMODEL_GROUP", "shop")
	if lines, err := runCommand(t, "setup"); err != nil {
		t.Fatalf("setup: %v and %v", lines, err)
	}
	filter := func(expression string) {
		t.Helper()
		if _, err := management.DeleteRule(t.Context(), topic, "projector", "$Default", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := management.CreateRule(t.Context(), topic, "projector", &admin.CreateRuleOptions{
			Name: new("$Default"), Filter: &admin.SQLFilter{Expression: expression},
		}); err != nil {
			t.Fatal(err)
		}
	}
	const group = "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup = 'shop'"
	filter(group + " OR cloudEvents_resendgroup LIKE 'shop/%'")
	if found, unasked, err := examined(t, servers); err != nil || unasked != "" {
		t.Errorf("the documented filter: got\n%s%sand %v", found, unasked, err)
	}
	filter(group)
	found, _, _ := examined(t, servers)
	wantAll(t, found, `fault: subscription "projector" has no rule that lets through all that is for READMODEL_GROUP "shop"`)
}

// What a role may not ask is told, and is no finding; what it lacks for its own
// work is.
func TestDoctor_TheDoctorSaysWhatItMayNotAsk(t *testing.T) {
	const key = "worker:Listen=listensecret"
	servers, as := guarded(t, "doctor", "--check-sas", "--sas-key", key)
	endpoint, _, _ := strings.Cut(servers.ServiceBus, ";")
	servers.ServiceBus = endpoint + ";SharedAccessKeyName=worker;SharedAccessKey=listensecret;UseDevelopmentEmulator=true"
	environ(t, servers, "doctor", as("projector", "runsecret"), "shop_read")
	found, unasked, err := examined(t, servers)
	if err != nil || found != "" {
		t.Errorf("the documented role: got\n%sand %v, want nothing found", found, err)
	}
	wantAll(t, unasked, "its properties: the claim Manage", "the members of the replica set", "the indexes: listIndexes")

	environ(t, servers, "doctor", as("onlooker", "looksecret"), "shop_read")
	found, unasked, _ = examined(t, servers)
	wantAll(t, found, `does not let the user [find on parked_messages insert on parked_messages update on parked_messages`, "update on latest")
	wantAll(t, unasked, "what is halted and parked: find")
}
