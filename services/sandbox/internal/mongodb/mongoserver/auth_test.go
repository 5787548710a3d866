package mongoserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
)

// guarded runs a server that asks for authentication, with the users root and
// plain, the second without a role.
func guarded(t *testing.T) *harness {
	t.Helper()
	return serve(t, command.Config{Engine: engine.New(engine.Config{}), Accounts: &access.Accounts{
		Users: []access.DeclaredUser{
			{Name: access.Name{Name: "root", DB: "admin"}, Password: "root's", Roles: []access.Name{{Name: "root", DB: "admin"}}},
			{Name: access.Name{Name: "plain", DB: "admin"}, Password: "plain's"},
		},
	}})
}

// as connects as a user of the admin database.
func (h *harness) as(t *testing.T, user, password string) *mongo.Client {
	t.Helper()
	return h.connect(t, options.Client().SetAuth(options.Credential{Username: user, Password: password}))
}

// user makes a user with these roles and connects as it.
func (h *harness) user(t *testing.T, name string, roles ...bson.D) *mongo.Client {
	t.Helper()
	run(t, h.as(t, "root", "root's").Database("admin"), bson.D{
		{Key: "createUser", Value: name}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: roles},
	})
	return h.as(t, name, "secret")
}

func role(name, db string) bson.D { return bson.D{{Key: "role", Value: name}, {Key: "db", Value: db}} }

func run(t *testing.T, db *mongo.Database, command bson.D) bson.Raw {
	t.Helper()
	reply, err := db.RunCommand(t.Context(), command).Raw()
	must(t, err)
	return reply
}

func expectCode(t *testing.T, what string, err error, code int, text string) {
	t.Helper()
	failure, ok := errors.AsType[mongo.ServerError](err)
	if !ok || !failure.HasErrorCode(code) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want code %d with %q", what, err, code, text)
	}
}

func TestAuth_TheDriverAuthenticates(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	for name, credential := range map[string]options.Credential{
		"negotiated": {Username: "root", Password: "root's"},
		"by name":    {Username: "root", Password: "root's", AuthMechanism: "SCRAM-SHA-256"},
		"the older":  {Username: "root", Password: "root's", AuthMechanism: "SCRAM-SHA-1"},
	} {
		client := h.connect(t, options.Client().SetAuth(credential))
		_, err := client.Database("shop").Collection("events").InsertOne(t.Context(), bson.D{{Key: "from", Value: name}})
		must(t, err)
		status := run(t, client.Database("admin"), bson.D{{Key: "connectionStatus", Value: 1}})
		if got := status.Lookup("authInfo", "authenticatedUsers", "0", "user").StringValue(); got != "root" {
			t.Errorf("%s: got user %q, want root", name, got)
		}
		if got := status.Lookup("authInfo", "authenticatedUserRoles", "0", "role").StringValue(); got != "root" {
			t.Errorf("%s: got role %q, want root", name, got)
		}
	}
}

func TestAuth_WrongCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	for name, credential := range map[string]options.Credential{
		"a wrong password": {Username: "root", Password: "plain's"},
		"an unknown user":  {Username: "nobody", Password: "root's"},
		"another database": {Username: "root", Password: "root's", AuthSource: "shop"},
		"SCRAM-SHA-1":      {Username: "root", Password: "plain's", AuthMechanism: "SCRAM-SHA-1"},
	} {
		err := h.connect(t, options.Client().SetAuth(credential)).Ping(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "Authentication failed") {
			t.Errorf("%s: got %v, want a failed authentication", name, err)
		}
	}
}

// A user of one mechanism is told of by it, so that a driver takes that one.
func TestAuth_AUserHasTheMechanismsItWasMadeWith(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	admin := h.as(t, "root", "root's").Database("admin")
	old := bson.D{{Key: "createUser", Value: "old"}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: bson.A{"root"}}}
	run(t, admin, append(old, bson.E{Key: "mechanisms", Value: bson.A{"SCRAM-SHA-1"}}))
	negotiated := options.Credential{Username: "old", Password: "secret", AuthSource: "admin"}
	must(t, h.connect(t, options.Client().SetAuth(negotiated)).Ping(t.Context(), nil))
	_, err := h.connect(t, options.Client().SetAuth(options.Credential{
		Username: "old", Password: "secret", AuthMechanism: "SCRAM-SHA-256",
	})).Database("admin").ListCollectionNames(t.Context(), bson.D{})
	if err == nil || !strings.Contains(err.Error(), "Authentication failed") {
		t.Errorf("got %v with another mechanism, want a failed authentication", err)
	}

	users := func() string {
		return run(t, admin, bson.D{{Key: "usersInfo", Value: "old"}}).Lookup("users", "0", "mechanisms").String()
	}
	if got := users(); got != `["SCRAM-SHA-1"]` {
		t.Errorf("got mechanisms %s, want SCRAM-SHA-1", got)
	}
	run(t, admin, bson.D{{Key: "updateUser", Value: "old"}, {Key: "pwd", Value: "other"}})
	if got := users(); got != `["SCRAM-SHA-1","SCRAM-SHA-256"]` {
		t.Errorf("got mechanisms %s after a new password, want both", got)
	}
	run(t, admin, bson.D{{Key: "updateUser", Value: "old"}, {Key: "mechanisms", Value: bson.A{"SCRAM-SHA-256"}}})
	if got := users(); got != `["SCRAM-SHA-256"]` {
		t.Errorf("got mechanisms %s, want the one that was kept", got)
	}
	for name, change := range map[string]bson.E{
		"one that is gone": {Key: "mechanisms", Value: bson.A{"SCRAM-SHA-1"}},
		"none":             {Key: "mechanisms", Value: bson.A{}},
		"unknown":          {Key: "mechanisms", Value: bson.A{"PLAIN"}},
	} {
		err := admin.RunCommand(t.Context(), bson.D{{Key: "updateUser", Value: "old"}, change}).Err()
		expectCode(t, name, err, 2, "mechanism")
	}
	err = admin.RunCommand(t.Context(), bson.D{
		{Key: "updateUser", Value: "old"}, {Key: "pwd", Value: "digest"}, {Key: "digestPassword", Value: false},
	}).Err()
	expectCode(t, "a digest for all mechanisms", err, 2, "undigested")
}

func TestAuth_WithoutAuthenticationOnlyGreetingsAreAnswered(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	db := h.connect(t).Database("shop")
	run(t, db, bson.D{{Key: "ping", Value: 1}})
	run(t, db, bson.D{{Key: "hello", Value: 1}})
	for _, command := range []string{"find", "insert", "aggregate", "listCollections", "createUser", "usersInfo", "getMore", "startSession"} {
		err := db.RunCommand(t.Context(), bson.D{{Key: command, Value: "events"}}).Err()
		expectCode(t, command, err, 13, "command "+command+" requires authentication")
	}
}

// TestAuth_AUserMayDoWhatItsRolesSay tries the built-in roles: "+" is allowed, "-"
// is not.
func TestAuth_AUserMayDoWhatItsRolesSay(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	_, err := h.as(t, "root", "root's").Database("shop").Collection("events").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}})
	must(t, err)
	for _, c := range []struct {
		role bson.D
		want string
	}{
		{role("read", "shop"), "+find +watch -insert -update -remove -createIndex -collMod +listCollections -otherFind -status -createUser -drop"},
		{role("readWrite", "shop"), "+find +watch +insert +update +remove +createIndex -collMod +listCollections -otherFind -status -createUser -drop"},
		{role("dbAdmin", "shop"), "-find -watch -insert -update -remove +createIndex +collMod +listCollections -otherFind -status -createUser +drop"},
		{role("userAdmin", "shop"), "-find -watch -insert -update -remove -createIndex -collMod -listCollections -otherFind -status +createUser -drop"},
		{role("clusterMonitor", "admin"), "-find -watch -insert -update -remove -createIndex -collMod -listCollections -otherFind +status -createUser -drop"},
		{role("readAnyDatabase", "admin"), "+find +watch -insert -update -remove -createIndex -collMod +listCollections +otherFind -status -createUser -drop"},
		{role("root", "admin"), "+find +watch +insert +update +remove +createIndex +collMod +listCollections +otherFind +status +createUser +drop"},
	} {
		name := c.role[0].Value.(string)
		t.Run(name, func(t *testing.T) {
			client := h.user(t, name+" user", c.role)
			for wanted := range strings.FieldsSeq(c.want) {
				err := attempt(t, client, wanted[1:])
				if wanted[0] == '+' && err != nil {
					t.Errorf("%s: got %v, want it done", wanted[1:], err)
				}
				if wanted[0] == '-' {
					expectCode(t, wanted[1:], err, 13, "not authorized on ")
				}
			}
		})
	}
}

// attempt does one thing of the table above.
func attempt(t *testing.T, client *mongo.Client, what string) error {
	t.Helper()
	ctx, shop := t.Context(), client.Database("shop")
	events := shop.Collection("events")
	byID := bson.D{{Key: "_id", Value: 0}}
	switch what {
	case "find":
		return ignoring(events.FindOne(ctx, bson.D{{Key: "_id", Value: "none"}}).Err(), mongo.ErrNoDocuments)
	case "watch":
		stream, err := events.Watch(ctx, mongo.Pipeline{})
		if err == nil {
			return stream.Close(ctx)
		}
		return err
	case "insert":
		_, err := events.InsertOne(ctx, bson.D{})
		return err
	case "update":
		_, err := events.UpdateOne(ctx, byID, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
		return err
	case "remove":
		_, err := events.DeleteOne(ctx, bson.D{{Key: "_id", Value: "none"}})
		return err
	case "createIndex":
		_, err := events.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}})
		return err
	case "collMod":
		return shop.RunCommand(ctx, bson.D{{Key: "collMod", Value: "events"}, {Key: "validationLevel", Value: "off"}}).Err()
	case "listCollections":
		_, err := shop.ListCollectionNames(ctx, bson.D{})
		return err
	case "otherFind":
		return ignoring(client.Database("other").Collection("events").FindOne(ctx, byID).Err(), mongo.ErrNoDocuments)
	case "status":
		return client.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetGetStatus", Value: 1}}).Err()
	case "createUser":
		return shop.RunCommand(ctx, bson.D{
			{Key: "createUser", Value: bson.NewObjectID().Hex()}, {Key: "pwd", Value: "x"}, {Key: "roles", Value: bson.A{"read"}},
		}).Err()
	case "drop":
		return shop.RunCommand(ctx, bson.D{{Key: "dropDatabase", Value: 1}}).Err()
	}
	t.Fatalf("nothing is known of %q", what)
	return nil
}

func ignoring(err, ignored error) error {
	if errors.Is(err, ignored) {
		return nil
	}
	return err
}

// TestAuth_ARoleOfOnesOwnAllowsItsActionsOnItsCollection is the shape of the roles in
// docs/security.md.
func TestAuth_ARoleOfOnesOwnAllowsItsActionsOnItsCollection(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	admin := h.as(t, "root", "root's").Database("admin")
	privilege := func(collection string, actions ...string) bson.D {
		return bson.D{
			{Key: "resource", Value: bson.D{{Key: "db", Value: "shop"}, {Key: "collection", Value: collection}}},
			{Key: "actions", Value: actions},
		}
	}
	run(t, admin, bson.D{
		{Key: "createRole", Value: "narrow"},
		{Key: "roles", Value: bson.A{}},
		{Key: "privileges", Value: bson.A{privilege("events", "find", "changeStream"), privilege("state", "find", "update")}},
	})
	shop := h.user(t, "narrow user", role("narrow", "admin")).Database("shop")
	if _, err := shop.Collection("events").Find(t.Context(), bson.D{}); err != nil {
		t.Errorf("find in events: %v", err)
	}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	if _, err := shop.Collection("state").UpdateOne(t.Context(), bson.D{}, set); err != nil {
		t.Errorf("update of state: %v", err)
	}
	_, err := shop.Collection("state").UpdateOne(t.Context(), bson.D{}, set, options.UpdateOne().SetUpsert(true))
	expectCode(t, "an upsert without insert", err, 13, "not authorized on shop to execute command { update: ")
	err = shop.Collection("state").FindOneAndUpdate(t.Context(), bson.D{}, set, options.FindOneAndUpdate().SetUpsert(true)).Err()
	expectCode(t, "a findAndModify that upserts", err, 13, "")
	_, err = shop.Collection("state").Watch(t.Context(), mongo.Pipeline{})
	expectCode(t, "a change stream on another collection", err, 13, "")
	_, err = shop.Watch(t.Context(), mongo.Pipeline{})
	expectCode(t, "a change stream on the database", err, 13, "")
	lookup := mongo.Pipeline{{{Key: "$facet", Value: bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "$lookup", Value: bson.D{
		{Key: "from", Value: "secrets"}, {Key: "localField", Value: "a"}, {Key: "foreignField", Value: "a"}, {Key: "as", Value: "b"},
	}}}}}}}}}
	_, err = shop.Collection("events").Aggregate(t.Context(), lookup)
	expectCode(t, "a $lookup in a $facet", err, 13, "")

	run(t, admin, bson.D{{Key: "updateRole", Value: "narrow"}, {Key: "privileges", Value: bson.A{privilege("state", "find")}}})
	_, err = shop.Collection("events").Find(t.Context(), bson.D{})
	expectCode(t, "a connection whose role has lost it", err, 13, "not authorized on shop")
	run(t, admin, bson.D{{Key: "dropUser", Value: "narrow user"}})
	_, err = shop.Collection("state").Find(t.Context(), bson.D{})
	expectCode(t, "a connection whose user is gone", err, 13, "requires authentication")
}

func TestAuth_AFieldThatComesTwiceIsRefused(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	shop := h.user(t, "reader", role("read", "shop")).Database("shop")
	err := shop.RunCommand(t.Context(), bson.D{
		{Key: "aggregate", Value: "events"}, {Key: "pipeline", Value: bson.A{}}, {Key: "pipeline", Value: bson.A{}}, {Key: "cursor", Value: bson.D{}},
	}).Err()
	expectCode(t, "two pipelines", err, 9, "duplicate field")
}

func TestAuth_UsersAndRolesAreListedAndChanged(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	admin := h.as(t, "root", "root's").Database("admin")
	for _, command := range []bson.D{
		{{Key: "createRole", Value: "r"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}},
		{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "before"}, {Key: "roles", Value: bson.A{"r"}}},
		{{Key: "updateUser", Value: "u"}, {Key: "pwd", Value: "after"}, {Key: "roles", Value: bson.A{"readAnyDatabase"}}},
	} {
		run(t, admin, command)
	}
	user := run(t, admin, bson.D{{Key: "usersInfo", Value: "u"}})
	if got := user.Lookup("users", "0", "roles", "0", "role").StringValue(); got != "readAnyDatabase" || strings.Contains(user.String(), "storedKey") {
		t.Errorf("got %s, want the new role and no credentials", user)
	}
	if got := run(t, admin, bson.D{{Key: "rolesInfo", Value: 1}}).Lookup("roles", "0", "role").StringValue(); got != "r" {
		t.Errorf("got role %q, want r", got)
	}
	_, err := h.as(t, "u", "after").Database("x").Collection("y").Find(t.Context(), bson.D{})
	must(t, err)
	for name, c := range map[string]struct {
		command bson.D
		code    int
	}{
		"a user that is there":    {bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{}}}, 51003},
		"a role that is there":    {bson.D{{Key: "createRole", Value: "r"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}}, 51002},
		"a built-in role":         {bson.D{{Key: "createRole", Value: "read"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}}, 51002},
		"a user with no role":     {bson.D{{Key: "createUser", Value: "v"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"none"}}}, 31},
		"a role that is not":      {bson.D{{Key: "dropRole", Value: "none"}}, 31},
		"a user that is not":      {bson.D{{Key: "dropUser", Value: "none"}}, 11},
		"an action that is none":  {bson.D{{Key: "createRole", Value: "s"}, {Key: "privileges", Value: bson.A{bson.D{{Key: "resource", Value: bson.D{{Key: "cluster", Value: true}}}, {Key: "actions", Value: bson.A{"fly"}}}}}, {Key: "roles", Value: bson.A{}}}, 9},
		"a resource that is none": {bson.D{{Key: "createRole", Value: "s"}, {Key: "privileges", Value: bson.A{bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: "x"}}}, {Key: "actions", Value: bson.A{"find"}}}}}, {Key: "roles", Value: bson.A{}}}, 9},
		"no password":             {bson.D{{Key: "createUser", Value: "v"}, {Key: "roles", Value: bson.A{}}}, 2},
	} {
		expectCode(t, name, admin.RunCommand(t.Context(), c.command).Err(), c.code, "")
	}
}

func TestAuth_UsersDoNotReachIntoEachOthersSessionsAndCursors(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	root := h.as(t, "root", "root's")
	docs := make([]any, 10)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	_, err := root.Database("shop").Collection("events").InsertMany(t.Context(), docs)
	must(t, err)
	first := run(t, root.Database("shop"), bson.D{{Key: "find", Value: "events"}, {Key: "batchSize", Value: 2}})
	id := first.Lookup("cursor", "id").Int64()
	other := h.user(t, "reader", role("read", "shop")).Database("shop")
	err = other.RunCommand(t.Context(), bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "events"}}).Err()
	expectCode(t, "getMore", err, 13, "was not created by the authenticated user")
	err = other.RunCommand(t.Context(), bson.D{{Key: "killCursors", Value: "events"}, {Key: "cursors", Value: bson.A{id}}}).Err()
	expectCode(t, "killCursors", err, 13, "not authorized")
}

// TestAuth_ManyClientsAuthenticateAtOnce opens a pool of connections, each of which
// has to prove itself.
func TestAuth_ManyClientsAuthenticateAtOnce(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	client := h.connect(t, options.Client().SetAuth(options.Credential{Username: "root", Password: "root's"}).SetMinPoolSize(20))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failures := make(chan error)
	for i := range 20 {
		go func() {
			_, err := client.Database("shop").Collection("events").InsertOne(ctx, bson.D{{Key: "_id", Value: fmt.Sprint(i)}})
			failures <- err
		}()
	}
	for range 20 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}
