package app_test

import (
	"net/http"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/readmodel"
)

// unconfirmed are the topics of the commands that a start makes to write.
var unconfirmed = map[string]string{
	"update": "unconfirmed-update", "findAndModify": "unconfirmed-beat", "createIndexes": "unconfirmed-indexes", "create": "unconfirmed-views",
}

// A projector does not take for done what no majority has confirmed: while the read database
// answers any write of its start with a write concern error it says so, tries again, and is
// not ready. It begins by itself once writes are confirmed.
func TestStart_WaitsWhileNoMajorityConfirmsItsWrites(t *testing.T) {
	for command, topic := range unconfirmed {
		t.Run(command, func(t *testing.T) {
			client, database := servers.Mongo(t, nil)
			failing := func(mode any) {
				t.Helper()
				if err := client.Database("admin").RunCommand(t.Context(), bson.D{
					{Key: "configureFailPoint", Value: "failCommand"},
					{Key: "mode", Value: mode},
					{Key: "data", Value: bson.D{
						{Key: "failCommands", Value: bson.A{command}},
						{Key: "appName", Value: readmodel.Application},
						{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}},
					}},
				}).Err(); err != nil {
					t.Fatal(err)
				}
			}
			defer failing("off")
			failing("alwaysOn")
			cfg := configured(t, topic, database)
			p := start(t, cfg, parse(t))
			until(t, "it says what it waits for", func() bool {
				return strings.Contains(p.logs.String(), "waiting for the read database") || strings.Contains(p.logs.String(), "taking sessions")
			})
			if said := p.logs.String(); !strings.Contains(said, "waiting for replication timed out") {
				t.Error("the log does not say what it waits for")
			}
			// An index or a view is there by the next attempt; each start has other writes behind
			// it, and what a majority has of these it has of those.
			made := command == "create" || command == "createIndexes"
			if code, _ := answer(t, p, "/ready"); !made && (p.Status().State != "waiting for MongoDB" || code != http.StatusServiceUnavailable) {
				t.Errorf("state %q, ready answers %d, want it to wait", p.Status().State, code)
			}
			send(t, topic, event("a", 1, "Happened", `{}`))
			failing("off")
			until(t, "it applies what has come", func() bool { return p.Status().Applied == 1 })
			if !strings.Contains(p.logs.String(), "the read database answers") {
				t.Error("the log does not say that the wait is over")
			}
		})
	}
}
