package mongoserver_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// privilege is {resource: {db, collection}, actions}.
func privilege(db, collection string, actions ...string) bson.D {
	return bson.D{
		{Key: "resource", Value: bson.D{{Key: "db", Value: db}, {Key: "collection", Value: collection}}},
		{Key: "actions", Value: actions},
	}
}

func TestGrants_ReachAConnectedUserAtOnce(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	admin := h.as(t, "root", "root's").Database("admin")
	user := h.user(t, "u", role("read", "elsewhere"))
	run(t, admin, bson.D{{Key: "createRole", Value: "inner"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}})
	run(t, admin, bson.D{{Key: "createRole", Value: "outer"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}})
	finds := func() bool {
		return errors.Is(user.Database("shop").Collection("events").FindOne(t.Context(), bson.D{}).Err(), mongo.ErrNoDocuments)
	}
	roles := func(names ...string) bson.E { return bson.E{Key: "roles", Value: names} }
	privileges := bson.E{Key: "privileges", Value: bson.A{privilege("shop", "events", "find", "insert")}}
	for _, step := range []struct {
		command bson.D
		finds   bool
	}{
		{bson.D{{Key: "grantRolesToUser", Value: "u"}, roles("readAnyDatabase")}, true},
		{bson.D{{Key: "revokeRolesFromUser", Value: "u"}, roles("readAnyDatabase")}, false},
		{bson.D{{Key: "grantRolesToUser", Value: "u"}, roles("outer")}, false},
		{bson.D{{Key: "grantRolesToRole", Value: "outer"}, roles("inner")}, false},
		{bson.D{{Key: "grantPrivilegesToRole", Value: "inner"}, privileges}, true},
		{bson.D{{Key: "revokePrivilegesFromRole", Value: "inner"}, {Key: "privileges", Value: bson.A{privilege("shop", "events", "insert")}}}, true},
		{bson.D{{Key: "revokePrivilegesFromRole", Value: "inner"}, privileges}, false},
		{bson.D{{Key: "grantPrivilegesToRole", Value: "inner"}, privileges}, true},
		{bson.D{{Key: "revokeRolesFromRole", Value: "outer"}, roles("inner")}, false},
		{bson.D{{Key: "grantRolesToRole", Value: "outer"}, roles("inner")}, true},
		{bson.D{{Key: "dropAllRolesFromDatabase", Value: 1}}, false},
	} {
		run(t, admin, step.command)
		if got := finds(); got != step.finds {
			t.Errorf("after %v: got finds %t, want %t", step.command, got, step.finds)
		}
	}
}

func TestGrants_AreAddedToWhatIsThere(t *testing.T) {
	t.Parallel()
	admin := guarded(t).as(t, "root", "root's").Database("admin")
	run(t, admin, bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"readAnyDatabase"}}})
	for range 2 {
		run(t, admin, bson.D{{Key: "grantRolesToUser", Value: "u"}, {Key: "roles", Value: bson.A{role("read", "shop"), "clusterMonitor"}}})
	}
	roles, err := run(t, admin, bson.D{{Key: "usersInfo", Value: "u"}}).Lookup("users", "0", "roles").Array().Values()
	must(t, err)
	if len(roles) != 3 {
		t.Errorf("got roles %v, want the old one and two that were granted", roles)
	}
	run(t, admin, bson.D{{Key: "createRole", Value: "r"}, {Key: "roles", Value: bson.A{}}, {Key: "privileges", Value: bson.A{privilege("shop", "events", "find")}}})
	run(t, admin, bson.D{{Key: "grantPrivilegesToRole", Value: "r"}, {Key: "privileges", Value: bson.A{privilege("shop", "events", "find", "insert")}}})
	shown := run(t, admin, bson.D{{Key: "rolesInfo", Value: "r"}, {Key: "showPrivileges", Value: true}}).Lookup("roles", "0", "privileges").Array()
	if got := shown.Index(0).Document().Lookup("actions").Array().String(); got != `["find","insert"]` {
		t.Errorf("got actions %s of %s, want both, once", got, shown)
	}
}

func TestGrants_AreRefused(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	admin := h.as(t, "root", "root's").Database("admin")
	for _, name := range []string{"a", "b"} {
		run(t, admin, bson.D{{Key: "createRole", Value: name}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}})
	}
	run(t, admin, bson.D{{Key: "grantRolesToRole", Value: "a"}, {Key: "roles", Value: bson.A{"b"}}})
	granting := func(command, to string, roles ...any) bson.D {
		return bson.D{{Key: command, Value: to}, {Key: "roles", Value: append(bson.A{}, roles...)}}
	}
	for name, c := range map[string]struct {
		command bson.D
		code    int
		text    string
	}{
		"to a user that is not": {granting("grantRolesToUser", "none", "a"), 11, "none@admin"},
		"of a role that is not": {granting("grantRolesToUser", "plain", "none"), 31, "none@admin"},
		"of no role":            {granting("revokeRolesFromUser", "plain"), 2, "non-empty"},
		"to a built-in role":    {granting("grantRolesToRole", "root", "a"), 49, "built-in"},
		"of a role to itself":   {granting("grantRolesToRole", "a", "a"), 49, "cycle"},
		"of a role to its own":  {granting("grantRolesToRole", "b", "a"), 49, "cycle"},
		"with an unknown field": {append(granting("grantRolesToUser", "plain", "a"), bson.E{Key: "x", Value: 1}), 40415, "x"},
		"of no privilege":       {bson.D{{Key: "grantPrivilegesToRole", Value: "a"}, {Key: "privileges", Value: bson.A{}}}, 2, "non-empty"},
		"to a role that is not": {bson.D{{Key: "grantPrivilegesToRole", Value: "none"}, {Key: "privileges", Value: bson.A{privilege("x", "y", "find")}}}, 31, "none@admin"},
	} {
		expectCode(t, name, admin.RunCommand(t.Context(), c.command).Err(), c.code, c.text)
	}
	shop := h.as(t, "root", "root's").Database("shop")
	run(t, shop, bson.D{{Key: "createRole", Value: "local"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}})
	expectCode(t, "of a role of another database", shop.RunCommand(t.Context(), granting("grantRolesToRole", "local", role("a", "admin"))).Err(), 49, "other databases")

	plain := h.as(t, "plain", "plain's").Database("admin")
	for _, command := range []bson.D{
		granting("grantRolesToUser", "plain", "a"), granting("revokeRolesFromUser", "plain", "a"), granting("grantRolesToRole", "a", "b"),
		granting("revokeRolesFromRole", "a", "b"),
		{{Key: "grantPrivilegesToRole", Value: "a"}, {Key: "privileges", Value: bson.A{privilege("x", "y", "find")}}},
		{{Key: "revokePrivilegesFromRole", Value: "a"}, {Key: "privileges", Value: bson.A{privilege("x", "y", "find")}}},
		{{Key: "dropAllUsersFromDatabase", Value: 1}},
		{{Key: "dropAllRolesFromDatabase", Value: 1}},
	} {
		expectCode(t, command[0].Key+" without the privilege", plain.RunCommand(t.Context(), command).Err(), 13, "not authorized")
	}
}
