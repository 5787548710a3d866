package doctor_test

import (
	"testing"

	"changerelay/services/publisher/internal/doctor"
)

// on is a privilege on a collection, or several where a name is empty.
func on(database, collection string, actions ...string) doctor.Privilege {
	p := doctor.Privilege{Actions: actions}
	p.Resource.DB, p.Resource.Collection = &database, &collection
	return p
}

func onEverything(actions ...string) doctor.Privilege {
	p := doctor.Privilege{Actions: actions}
	p.Resource.AnyResource = true
	return p
}

func TestRole_ARoleIsComparedWithWhatIsDocumented(t *testing.T) {
	t.Parallel()
	needs := []doctor.Need{
		{Database: "shop", Collections: []string{"events"}, Actions: []string{"find", "changeStream"}},
		{Database: "relay", Actions: []string{"find", "insert", "update"}, Optional: []string{"createIndex"}},
	}
	source := on("shop", "events", "find", "changeStream")
	state := on("relay", "", "find", "insert", "update", "createIndex")
	for name, tt := range map[string]struct {
		privileges []doctor.Privilege
		want       []string
	}{
		"as documented":             {[]doctor.Privilege{source, state}, nil},
		"over several privileges":   {[]doctor.Privilege{on("shop", "", "find"), on("", "", "changeStream"), state}, nil},
		"without the optional":      {[]doctor.Privilege{source, on("relay", "", "find", "insert", "update")}, nil},
		"may look at other things":  {[]doctor.Privilege{source, state, on("local", "oplog.rs", "find", "collStats")}, nil},
		"nothing on the source":     {[]doctor.Privilege{state}, []string{"fault: lacks find on shop.events, changeStream on shop.events"}},
		"a part of the state":       {[]doctor.Privilege{source, on("relay", "leader_leases", "find", "insert", "update")}, []string{"fault: lacks find on relay.*, insert on relay.*, update on relay.*"}},
		"may write to the source":   {[]doctor.Privilege{source, state, on("shop", "", "update", "insert", "find")}, []string{"warning: may do more than the publisher needs: insert/update on shop.*"}},
		"may delete the state":      {[]doctor.Privilege{source, state, on("relay", "", "remove")}, []string{"warning: may do more than the publisher needs: remove on relay.*"}},
		"is the root of everything": {[]doctor.Privilege{onEverything("find", "changeStream", "insert", "update", "remove")}, []string{"warning: may do more than the publisher needs: insert/remove/update on everything"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := doctor.JudgeRole(doctor.Role{User: "publisher", Privileges: tt.privileges, Needs: needs})
			if len(found) != len(tt.want) {
				t.Fatalf("found %+v, want %q", found, tt.want)
			}
			for i, f := range found {
				if got := string(f.Severity) + ": " + f.Problem; got != tt.want[i] || f.Fix == "" {
					t.Errorf("found %q, want %q and a fix", got, tt.want[i])
				}
			}
		})
	}
}
