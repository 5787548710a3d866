package app_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/testserver"
)

// examined is what publisher doctor --json finds, as text by subject.
func examined(t *testing.T, servers testserver.Servers, c config.Config) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := command.Examine(t.Context(), command.Call{Config: c, JSON: true, Stdout: &stdout},
		azcore.ClientOptions{Transport: &http.Client{Transport: trusting(t, servers.Management)}})
	var said struct {
		Findings []struct{ Subject, Problem, Fix string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil {
		t.Fatalf("doctor says %q: %v", &stdout, err)
	}
	var text strings.Builder
	for _, f := range said.Findings {
		text.WriteString(f.Subject + " " + f.Problem + "\n")
		if f.Fix == "" {
			t.Errorf("%q has no fix", f.Problem)
		}
	}
	return text.String(), err
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

func TestDoctor_TheDoctorFindsWhatIsWrongWithTheRealEntities(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, func(c *config.Config) { c.Batching = "mixed" })
	found, err := examined(t, servers, c)
	if err == nil {
		t.Error("doctor ends well, want an error for its findings")
	}
	for _, says := range []string{"refuses a batch of several sessions", `state database "change_relay" lacks indexes`} {
		if !strings.Contains(found, says) {
			t.Errorf("found\n%s, want %q", found, says)
		}
	}
	if strings.Contains(found, "of changes; a publisher") {
		t.Errorf("found\n%s, want nothing of an operation log that is as short as its source is young", found)
	}
	if err := runCommand(t, c, io.Discard, "setup"); err != nil {
		t.Fatal(err)
	}
	c.Batching = "session"
	found, _ = examined(t, servers, c)
	if strings.Contains(found, "lacks indexes") || strings.Contains(found, "several sessions") {
		t.Errorf("found\n%s after setup, and with BATCHING=session", found)
	}
	var said bytes.Buffer
	c.ServiceBusManagementURL = servers.Management
	if err := runCommand(t, c, &said, "doctor", "--json"); err == nil || strings.Contains(said.String(), "cannot be examined") {
		t.Errorf("asked at SERVICEBUS_MANAGEMENT_URL: %s, %v, want what is found and the topic examined", &said, err)
	}
	c.ServiceBusManagementURL = ""
	c.ServiceBusTopic, c.SourceFilter = "nowhere", `{"a": {"$above": 1}}`
	found, _ = examined(t, servers, c)
	for _, says := range []string{`topic "nowhere" cannot be examined: there is no such topic`, "does not open the change stream"} {
		if !strings.Contains(found, says) {
			t.Errorf("found\n%s, want %q", found, says)
		}
	}
}

// TestDoctor_TheDoctorFindsAnOperationLogThatIsTooShort writes more than the log holds.
func TestDoctor_TheDoctorFindsAnOperationLogThatIsTooShort(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t, "--oplog-entries", "60")
	events(t, servers).write(t, 100, 2)
	if found, err := examined(t, servers, configured(servers)); err == nil || !strings.Contains(found, "keeps 0s of changes") {
		t.Errorf("found\n%s (%v), want that the operation log is short", found, err)
	}
}

// TestDoctor_TheDoctorFindsOutWhichIndexServesACopy does what it says.
func TestDoctor_TheDoctorFindsOutWhichIndexServesACopy(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 5, 2)
	const says = "has no index that serves it"
	if found, _ := examined(t, servers, configured(servers)); strings.Contains(found, says) {
		t.Errorf("found\n%s where nothing is ever copied", found)
	}
	c := configured(servers, func(c *config.Config) { c.OnHistoryLost = "heal" })
	if found, _ := examined(t, servers, c); !strings.Contains(found, says) {
		t.Errorf("found\n%s, want %q", found, says)
	}
	index := bson.D{{Key: c.FieldAggregateID, Value: 1}, {Key: c.FieldVersion, Value: 1}, {Key: "_id", Value: 1}}
	if _, err := source.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: index}); err != nil {
		t.Fatal(err)
	}
	if found, _ := examined(t, servers, c); strings.Contains(found, says) {
		t.Errorf("found\n%s with the index", found)
	}
	c.Mode = "documents"
	if found, _ := examined(t, servers, c); strings.Contains(found, says) {
		t.Errorf("found\n%s of documents, which go along _id", found)
	}
}

func TestDoctor_TheDoctorComparesTheUserWithTheDocumentedRoles(t *testing.T) {
	t.Parallel()
	accounts := filepath.Join(t.TempDir(), "accounts.json")
	const text = `{
		"roles": [
			{"role": "right", "privileges": [
				{"resource": {"db": "shop", "collection": "events"}, "actions": ["find", "changeStream"]},
				{"resource": {"db": "change_relay", "collection": ""}, "actions": ["find", "insert", "update", "changeStream", "createIndex"]}
			]},
			{"role": "half", "privileges": [{"resource": {"db": "change_relay", "collection": ""}, "actions": ["find", "insert", "update"]}]}
		],
		"users": [
			{"user": "documented", "pwd": "secret", "roles": [{"role": "right"}]},
			{"user": "powerless", "pwd": "secret", "roles": [{"role": "half"}]},
			{"user": "mighty", "pwd": "secret", "roles": [{"role": "right"}, {"role": "readWrite", "db": "shop"}]}
		]
	}`
	if err := os.WriteFile(accounts, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := testserver.Start(t, "--auth", accounts)
	for user, says := range map[string]string{
		"documented": "",
		"powerless":  `user "powerless" lacks find on shop.events, changeStream on shop.events`,
		"mighty":     `user "mighty" may do more than the publisher needs: `,
	} {
		uri := settings.Secret(strings.Replace(servers.MongoURI, "mongodb://", "mongodb://"+user+":secret@", 1))
		found, _ := examined(t, servers, configured(servers, func(c *config.Config) { c.MongoURI, c.StateMongoURI = uri, uri }))
		if got := strings.Contains(found, `user "`); got != (says != "") || !strings.Contains(found, says) {
			t.Errorf("found of %s\n%s, want %q", user, found, says)
		}
	}
}

func TestDoctor_SetupMayBeRunAgain(t *testing.T) {
	t.Parallel()
	c := configured(testserver.Get(t), func(c *config.Config) { c.StateDatabase = testserver.Name(t) })
	for range 2 {
		if err := runCommand(t, c, io.Discard, "setup"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoctor_AListOfCollectionsNeedsTheDatabase(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source func(*config.Config)
		want   int // collections that the stream is of; 0 is the database
	}{
		"one": {func(*config.Config) {}, 1}, "a list of one": {list("events"), 1}, "a list": {list("events", "others"), 0}, "all": {list("*"), 0},
	} {
		c := configured(testserver.Servers{}, tt.source)
		if need := command.SourceNeed(&c); len(need.Collections) != tt.want {
			t.Errorf("%s: %+v, want %d collections", name, need, tt.want)
		}
	}
}
