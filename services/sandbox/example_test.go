package sandbox_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox"
)

// A sandbox is made, which binds its addresses, and run, which serves them. In a
// test sandboxtest.Start does both, and ends it.
func Example() {
	s, err := sandbox.New(sandbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	client, err := mongo.Connect(options.Client().ApplyURI(s.MongoURI()))
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := client.Database("shop").Collection("orders")
	if _, err := orders.InsertOne(ctx, bson.D{{Key: "_id", Value: "order-1"}}); err != nil {
		fmt.Println(err)
	}
	count, err := orders.CountDocuments(ctx, bson.D{})
	fmt.Println(count, err)

	_ = client.Disconnect(ctx)
	stop()
	fmt.Println(<-done)
	// Output:
	// 1 <nil>
	// <nil>
}

// Queues, topics and subscriptions are declared as for the official emulator.
func ExampleConfig_entities() {
	s, err := sandbox.New(sandbox.Config{Entities: strings.NewReader(`{"UserConfig": {
		"Namespaces": [{"Name": "shop", "Queues": [{"Name": "invoices", "Properties": {}}]}],
		"Logging": {"Type": "File"}
	}}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sender, _ := bus.NewSender("invoices", nil)
	fmt.Println(sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("paid")}, nil))
	receiver, _ := bus.NewReceiverForQueue("invoices", nil)
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", messages[0].Body)

	_ = bus.Close(ctx)
	stop()
	<-done
	// Output:
	// <nil>
	// paid
}

// Faults go on until they are ended, here one that fails each insert.
func ExampleSandbox_StartFault() {
	s, err := sandbox.New(sandbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	client, err := mongo.Connect(options.Client().ApplyURI(s.MongoURI()))
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := client.Database("shop").Collection("orders")
	fault, err := s.StartFault(map[string]any{"kind": "mongodb.fail", "commands": []string{"insert"}, "code": 121})
	if err != nil {
		fmt.Println(err)
	}
	_, err = orders.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println(err != nil)
	s.EndFault(fault.ID)
	_, err = orders.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println(err)

	_ = client.Disconnect(ctx)
	stop()
	<-done
	// Output:
	// true
	// <nil>
}
