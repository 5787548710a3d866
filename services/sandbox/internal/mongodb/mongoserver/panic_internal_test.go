package mongoserver

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// A defect in a command costs the connection that met it, and no other.
func TestPanic_APanicEndsItsConnectionOnly(t *testing.T) {
	t.Parallel()
	commands := newCommands(serverversion.Version{})
	commands["explode"] = &command.Command{
		Needs: command.AnyUser(),
		Run:   func(context.Context, *command.Call, *command.Reply) error { panic("boom") },
	}
	e := engine.New(engine.Config{})
	server, err := command.New(command.Config{Address: "127.0.0.1:0", Engine: e, Commands: commands, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- server.Run(ctx) }()
	go func() { done <- e.Run(ctx) }()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI()))
	if err != nil {
		t.Fatal(err)
	}
	db := client.Database("test")
	if err := db.RunCommand(t.Context(), bson.D{{Key: "explode", Value: 1}}).Err(); !mongo.IsNetworkError(err) {
		t.Errorf("got %v, want a connection that was closed", err)
	}
	if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Errorf("got %v from the server after the panic", err)
	}
	_ = client.Disconnect(context.Background())
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("run: got %v, want nil", err)
		}
	}
}
