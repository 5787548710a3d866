package app_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

func TestDocuments_EveryChangeOfADocumentIsSentInOrder(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := run(t, configured(servers, func(c *config.Config) {
		c.Mode, c.DocumentAggregateID, c.FullDocument, c.FullDocumentBeforeChange = "documents", "_id", "updateLookup", "off"
		c.SourceCollection, c.SourceCollections = "", []string{"customers", "orders"}
		c.MaskFields = []string{"secret"}
	}))
	p.await(t, "the publisher to lead", leading)
	database := testserver.Connect(t, servers.MongoURI).Database("shop")
	orders := database.Collection("orders")
	for n, change := range []func() error{
		func() error {
			_, err := orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "secret", Value: "canary"}})
			return err
		},
		func() error {
			_, err := orders.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}})
			return err
		},
		func() error {
			_, err := orders.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "n", Value: 2}})
			return err
		},
		func() error { _, err := orders.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); return err },
		func() error {
			_, err := database.Collection("customers").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
			return err
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		// The look-up of an update shows the document as it is by then.
		p.await(t, "the change to be sent", sent(int64(n+1)))
	}
	var got []string
	for _, m := range receive(t, servers, 5) {
		got = append(got, *m.SessionID+" "+*m.Subject+" "+string(m.Body))
	}
	want := []string{
		`orders/1 orders.insert {"document":{"_id":1,"secret":"***"}}`,
		`orders/1 orders.update {"document":{"_id":1,"secret":"***","n":1},"changed":{"n":1}}`,
		`orders/1 orders.replace {"document":{"_id":1,"n":2}}`,
		`orders/1 orders.delete `,
		`customers/1 customers.insert {"document":{"_id":1}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("received\n%q, want\n%q", got, want)
	}
}

// With images an update shows the document as it left it, however late it is
// read, and a deletion shows whose document it was.
func TestDocuments_ImagesShowEachChangeAsItWas(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	database := testserver.Connect(t, servers.MongoURI).Database("shop")
	images := options.CreateCollection().SetChangeStreamPreAndPostImages(bson.D{{Key: "enabled", Value: true}})
	if err := database.CreateCollection(t.Context(), "orders", images); err != nil {
		t.Fatal(err)
	}
	documents := func(c *config.Config) {
		c.Mode, c.DocumentAggregateID, c.FullDocument, c.FullDocumentBeforeChange = "documents", "customer", "required", "required"
		c.SourceCollection, c.StreamName = "orders", "shop.orders"
	}
	p := run(t, configured(servers, documents))
	p.await(t, "the publisher to lead", leading)
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	orders := database.Collection("orders")
	if _, err := orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "customer", Value: "c7"}}); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if _, err := orders.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := orders.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	run(t, configured(servers, documents)).await(t, "all changes to be sent", sent(4))
	var got []string
	for _, m := range receive(t, servers, 4) {
		got = append(got, *m.SessionID+" "+*m.Subject+" "+string(m.Body))
	}
	want := []string{
		`c7 orders.insert {"document":{"_id":1,"customer":"c7"}}`,
		`c7 orders.update {"document":{"_id":1,"customer":"c7","n":0},"changed":{"n":0},"before":{"_id":1,"customer":"c7"}}`,
		`c7 orders.update {"document":{"_id":1,"customer":"c7","n":1},"changed":{"n":1},"before":{"_id":1,"customer":"c7","n":0}}`,
		`c7 orders.delete {"before":{"_id":1,"customer":"c7","n":1}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("received\n%q, want\n%q", got, want)
	}
}

// TestDocuments_AnImageThatIsMissingHaltsUntilItIsDoneWithout has a collection keep no image of
// one update while a publisher requires them.
func TestDocuments_AnImageThatIsMissingHaltsUntilItIsDoneWithout(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	database := testserver.Connect(t, servers.MongoURI).Database("shop")
	images := options.CreateCollection().SetChangeStreamPreAndPostImages(bson.D{{Key: "enabled", Value: true}})
	if err := database.CreateCollection(t.Context(), "orders", images); err != nil {
		t.Fatal(err)
	}
	wanting := func(images string) config.Config {
		return configured(servers, func(c *config.Config) {
			c.Mode, c.DocumentAggregateID, c.FullDocument, c.FullDocumentBeforeChange = "documents", "_id", images, images
			c.SourceCollection, c.StreamName = "orders", "shop.orders"
		})
	}
	p := run(t, wanting("required"))
	p.await(t, "the publisher to lead", leading)
	orders := database.Collection("orders")
	if _, err := orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	for n, keeps := range []bool{false, true} {
		kept := bson.D{{Key: "enabled", Value: keeps}}
		if err := database.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "orders"}, {Key: "changeStreamPreAndPostImages", Value: kept}}).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := orders.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}}); err != nil {
			t.Fatal(err)
		}
	}
	halted := p.await(t, "the stream to halt", func(s status.Status) bool { return s.State == "halted" })
	for _, want := range []string{"FULL_DOCUMENT", "whenAvailable", "publisher checkpoint accept"} {
		if !strings.Contains(halted.LastError, want) {
			t.Errorf("last error is %q, without %q", halted.LastError, want)
		}
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if err := runCommand(t, wanting("whenAvailable"), io.Discard, "checkpoint", "accept", "--why", "test"); err != nil {
		t.Fatal(err)
	}
	run(t, wanting("whenAvailable")).await(t, "what comes after it to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 2 })
	var got []string
	for _, m := range receive(t, servers, 3) {
		got = append(got, string(m.Body))
	}
	want := []string{
		`{"document":{"_id":1}}`,
		`{"changed":{"n":0}}`,
		`{"document":{"_id":1,"n":1},"changed":{"n":1},"before":{"_id":1,"n":0}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("received\n%q, want\n%q", got, want)
	}
}

func TestDocuments_AFilterThatTheServerDoesNotTakeEndsTheStart(t *testing.T) {
	t.Parallel()
	p := run(t, configured(testserver.Start(t), func(c *config.Config) { c.SourceFilter = `{"fullDocument.n": {"$above": 1}}` }))
	<-p.done
	if p.err == nil {
		t.Error("Run = nil, want the server's refusal")
	}
}

// receive receives count messages from the plain subscription, in the order in
// which the topic accepted them.
func receive(t *testing.T, servers testserver.Servers, count int) []*azservicebus.ReceivedMessage {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(t.Context()) })
	receiver, err := client.NewReceiverForSubscription(testserver.Topic, "observer",
		&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	var all []*azservicebus.ReceivedMessage
	for len(all) < count {
		some, err := receiver.ReceiveMessages(t.Context(), count-len(all), nil)
		if err != nil {
			t.Fatalf("received %d of %d: %v", len(all), count, err)
		}
		all = append(all, some...)
	}
	return all
}
