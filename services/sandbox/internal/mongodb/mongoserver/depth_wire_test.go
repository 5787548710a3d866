package mongoserver_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// insert.cpp, fixDocumentForInsert and validateDepth.
func TestInsert_RefusesADocumentThatNestsTooDeep(t *testing.T) {
	t.Parallel()
	client := newRawClient(t, startVersion(t, "4.4").server.Addr().String())
	insert := func(levels int, array bool) bson.Raw {
		var nested any = bson.D{}
		for range levels - 2 {
			if nested = (bson.D{{Key: "a", Value: nested}}); array {
				nested = bson.A{nested.(bson.D)[0].Value}
			}
		}
		body, err := bson.Marshal(bson.D{
			{Key: "insert", Value: "c"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: nested}}}},
			{Key: "$db", Value: "test"},
		})
		must(t, err)
		reply, err := client.roundTrip(message{body: body}, stepLimit)
		must(t, err)
		return reply
	}
	for _, array := range []bool{false, true} {
		if reply := insert(180, array); reply.Lookup("n").Int32() != 1 {
			t.Errorf("180 levels: got %s, want it inserted", reply)
		}
		reply := insert(181, array)
		if code, _ := reply.Lookup("writeErrors", "0", "code").Int32OK(); code != 15 {
			t.Errorf("181 levels: got %s, want the statement refused with 15", reply)
		}
	}
}
