package access

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestAccess_AGrantReachesAsFarAsItsResource(t *testing.T) {
	t.Parallel()
	everything := map[string]Resource{
		"shop.events": Collection("shop", "events"), "shop.orders": Collection("shop", "orders"), "shop": Database("shop"),
		"other.events": Collection("other", "events"), "all databases": {}, "the cluster": Cluster(),
		"shop.system.views": Collection("shop", "system.views"),
	}
	for name, c := range map[string]struct {
		grant   Resource
		reaches string
	}{
		"a collection":        {Collection("shop", "events"), "shop.events"},
		"a database":          {Database("shop"), "shop.events,shop.orders,shop"},
		"one name everywhere": {Collection("", "events"), "shop.events,other.events"},
		"all databases":       {Resource{}, "shop.events,shop.orders,shop,other.events,all databases"},
		"the cluster":         {Cluster(), "the cluster"},
		"a system collection": {Collection("shop", "system.views"), "shop.system.views"},
		"any resource":        {Resource{Any: true}, "shop.events,shop.orders,shop,other.events,all databases,the cluster,shop.system.views"},
	} {
		grants := Grants{}
		grants.Allow(Privilege{Resource: c.grant, Actions: []Action{Find}})
		want := map[string]bool{}
		for reached := range strings.SplitSeq(c.reaches, ",") {
			want[reached] = true
		}
		for resource, r := range everything {
			if got := grants.Allows(r, Find); got != want[resource] {
				t.Errorf("a grant on %s: find on %s is allowed: %t, want %t", name, resource, got, want[resource])
			}
			if grants.Allows(r, Insert) {
				t.Errorf("a grant of find on %s allows insert on %s", name, resource)
			}
		}
	}
}

func TestAccess_RolesHoldRoles(t *testing.T) {
	t.Parallel()
	a, b, c := Name{"a", "admin"}, Name{"b", "admin"}, Name{"c", "admin"}
	roles := map[Name]Role{
		a: {Roles: []Name{b}},
		b: {Roles: []Name{a, {"read", "shop"}}}, // in a circle, too
		c: {Roles: []Name{{"none", "admin"}}},
	}
	find := func(n Name) (Role, bool, error) {
		role, ok := roles[n]
		return role, ok, nil
	}
	grants, err := Resolve([]Name{a}, find)
	if err != nil || !grants.Allows(Collection("shop", "events"), Find) {
		t.Errorf("got %v, %v, want what the role read of shop allows", grants, err)
	}
	_, err = Resolve([]Name{c}, find)
	if unknown, ok := errors.AsType[*UnknownRoleError](err); !ok || unknown.Role.Name != "none" {
		t.Errorf("got %v, want the role none to be unknown", err)
	}
}

func TestAccess_BuiltInRolesNameKnownActions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"read", "readWrite", "dbAdmin", "userAdmin", "dbOwner", "readAnyDatabase", "readWriteAnyDatabase", "dbAdminAnyDatabase",
		"userAdminAnyDatabase", "clusterMonitor", "clusterAdmin", "root",
	} {
		role, ok := BuiltIn(Name{name, "admin"})
		if !ok || len(role.Privileges) == 0 {
			t.Errorf("there is no role %s", name)
		}
		for _, p := range role.Privileges {
			if err := p.Check(); err != nil {
				t.Errorf("role %s: %v", name, err)
			}
		}
	}
	if _, ok := BuiltIn(Name{"root", "shop"}); ok {
		t.Error("got root in a database that is not admin")
	}
}

func TestAccess_AnAccountsFileIsReadOrRefused(t *testing.T) {
	t.Parallel()
	accounts, err := Read(strings.NewReader(`{
		"roles": [{"role": "r", "privileges": [
			{"resource": {"db": "shop", "collection": ""}, "actions": ["find"]},
			{"resource": {"cluster": true}, "actions": ["listDatabases"]}], "roles": []}],
		"users": [{"user": "u", "db": "shop", "pwd": "p", "roles": [{"role": "r", "db": "admin"}, {"role": "read", "db": "shop"}]}]}`))
	if err != nil || accounts.Roles[0].Name.String() != "r@admin" || accounts.Roles[0].Privileges[0].Resource != Database("shop") ||
		accounts.Roles[0].Privileges[1].Resource != Cluster() || accounts.Users[0].Name.String() != "u@shop" || len(accounts.Users[0].Roles) != 2 {
		t.Errorf("got %+v, %v", accounts, err)
	}
	for name, text := range map[string]string{
		"no JSON":            `{`,
		"a field not known":  `{"users": [], "admins": []}`,
		"no user":            `{"users": []}`,
		"no password":        `{"users": [{"user": "u"}]}`,
		"a role of no name":  `{"roles": [{"privileges": []}], "users": [{"user": "u", "pwd": "p"}]}`,
		"an unknown action":  `{"roles": [{"role": "r", "privileges": [{"resource": {"cluster": true}, "actions": ["fly"]}]}], "users": [{"user": "u", "pwd": "p"}]}`,
		"half of a resource": `{"roles": [{"role": "r", "privileges": [{"resource": {"db": "d"}, "actions": ["find"]}]}], "users": [{"user": "u", "pwd": "p"}]}`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestAccess_AResourceIsTheSameAfterBSON(t *testing.T) {
	t.Parallel()
	for _, r := range []Resource{Cluster(), {Any: true}, {}, Database("d"), Collection("d", "c")} {
		doc, err := bson.Marshal(Privilege{Resource: r})
		if err != nil {
			t.Fatal(err)
		}
		var back Privilege
		if err := bson.Unmarshal(doc, &back); err != nil || back.Resource != r {
			t.Errorf("got %+v, %v, want %+v", back.Resource, err, r)
		}
	}
}
