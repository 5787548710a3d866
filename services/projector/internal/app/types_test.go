package app_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// The data of each message is that of a new publisher, of an older one, and of
// one whose data Extended JSON cannot carry.
func TestApp_KeepsTypesFromTheMessageToTheReadDocument(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	const types = `{"int":5,"long":{"$numberLong":"5"},"large":{"$numberLong":"9007199254740993"},"double":5.0,"nan":{"$numberDouble":"NaN"},` +
		`"decimal":{"$numberDecimal":"1.10"},"early":{"$date":{"$numberLong":"-1"}},"binary":{"$binary":{"base64":"AQI=","subType":"00"}},` +
		`"timestamp":{"$timestamp":{"t":1,"i":2}},"least":{"$minKey":1},"greatest":{"$maxKey":1}}`
	reserved, err := bson.Marshal(bson.D{{Key: "n", Value: int64(5)}, {Key: "stored", Value: bson.D{{Key: "$oid", Value: "text"}}}})
	if err != nil {
		t.Fatal(err)
	}
	inBSON := event("reserved", 1, "Counted", "")
	inBSON.ContentType, inBSON.Data = contract.ContentTypeBSON, reserved
	send(t, "types", event("new", 1, "Happened", types), event("old", 1, "Happened", `{"int":5,"large":9007199254740993}`), inBSON)
	projections, err := projection.Parse("types.yaml", []byte("projections:\n- name: types\n  collection: types\n  on:\n    Happened: {set: {data: data}}\n    Counted: {set: {n: data.n}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, configured(t, "types", database), projections)
	until(t, "all is completed", func() bool { return p.Status().Completed == 3 })
	documents := sandboxtest.Documents(t, client.Database(database), "types")
	var want bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(types), false, &want); err != nil {
		t.Fatal(err)
	}
	if got := documents["new"].Lookup("data").Document(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored\n%s, want\n%s", got, want)
	}
	for field, want := range map[string]bson.Type{"int": bson.TypeInt32, "large": bson.TypeInt64} {
		if got := documents["old"].Lookup("data", field).Type; got != want {
			t.Errorf("%s of an older publisher: stored as %s, want %s", field, got, want)
		}
	}
	if got := documents["reserved"].Lookup("n"); got.Type != bson.TypeInt64 || got.Int64() != 5 {
		t.Errorf("data with a reserved name: got %s, want 5 in 64 bits", got)
	}
}
