package app_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// Names that the update language could take for something else: those with dots
// and the empty one are stored as data; one that begins with $ is refused by a
// server of version 4.4, which halts its aggregate and says so, and is stored under
// another name where the projection makes one.
func TestApp_StoresFieldsWhateverTheirNamesAreAsFarAsTheServerDoes(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	projections, err := projection.Parse("names.yaml", []byte(`projections:
- name: names
  collection: names
  on:
    Happened: {set: {data: data}, push: {list: data}}
    Renamed: {set: {data: 'fromPairs(map(toPairs(data), [replace(#[0], "$", "_"), #[1]]))'}}
    Written: {set: {data: toJSON(data)}}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, configured(t, "names", database), projections)
	send(t, "names", event("dots", 1, "Happened", `{"a.b":1,"..":2}`), event("empty", 1, "Happened", `{"":1,"x":{"":2}}`),
		event("dollar", 1, "Happened", `{"x":{"$set":1}}`), event("dollar", 2, "Happened", `{}`),
		event("renamed", 1, "Renamed", `{"$set":1,"x":2}`), event("written", 1, "Written", `{"$set":1}`))
	until(t, "all are dealt with", func() bool { return p.Status().Completed == 6 })
	db := client.Database(database)
	documents := sandboxtest.Documents(t, db, "names")
	for id, want := range map[string]string{
		"dots": `{"a.b":1,"..":2}`, "empty": `{"":1,"x":{"":2}}`, "renamed": `{"_set":1,"x":2}`,
	} {
		got, err := bson.MarshalExtJSON(documents[id].Lookup("data").Document(), false, false)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s and %v, want %s", id, got, err, want)
		}
	}
	if got := documents["written"].Lookup("data"); !strings.Contains(got.String(), "$set") {
		t.Errorf("written as text: got %s", got)
	}
	halted := sandboxtest.Documents(t, db, "halted_aggregates")
	if reason := fmt.Sprint(halted["dollar"].Lookup("reason")); len(halted) != 1 || !strings.Contains(reason, "52") {
		t.Errorf("halted: got %v, want the one with $ alone, for code 52", halted)
	}
}
