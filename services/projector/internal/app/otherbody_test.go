package app_test

import (
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// An event whose body is an AMQP value is not one without data: it is not applied, its
// message stays whole at the broker, and its place is kept.
func TestUnreadable_ABodyThatIsNoDataIsNotAppliedAndNotLost(t *testing.T) {
	for _, contentType := range []string{"", contract.ContentTypeJSON} {
		t.Run(contentType, func(t *testing.T) {
			topic := "otherbody"
			if contentType != "" {
				topic = "otherbody-json"
			}
			client, database := servers.Mongo(t, nil)
			p := start(t, configured(t, topic, database), parse(t))
			onTopic(t, topic, database, counting)
			m, err := contract.Encode(event("a", 1, "Happened", "{}"), contract.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			m.ContentType = contentType
			sandboxtest.SendBody(t, servers, topic, m, azservicebus.AMQPAnnotatedMessageBody{Value: "precious"})
			send(t, topic, happened("a", 2, 2)...)
			until(t, "its place and what follows are parked", func() bool { return count(t, client.Database(database), "parked_messages") == 2 })
			until(t, "it is dead-lettered", func() bool { return p.Status().DeadLettered == 1 })
			if got := sandboxtest.Documents(t, client.Database(database), "orders"); len(got) != 0 {
				t.Errorf("got %v, want nothing applied", got)
			}
			lines, err := runCommand(t, "dlq", "discard", "--all")
			if err != nil || len(lines) != 1 || lines[0]["reason"] != "NotParkable" || lines[0]["message"].(map[string]any)["other_body"] != "AMQP value: precious" {
				t.Errorf("dlq discard: got %v and %v, want what the body holds", lines, err)
			}
			if _, err := runCommand(t, "parked", "discard", "a", "a-1"); err != nil {
				t.Fatal(err)
			}
			if lines, err := runCommand(t, "parked", "redrive", "a"); err != nil || len(lines) != 1 || lines[0]["lifted"] != true {
				t.Errorf("redrive: got %v and %v, want the halt lifted", lines, err)
			}
			if got := seen(sandboxtest.Documents(t, client.Database(database), "orders")["a"]); !slices.Equal(got, []int64{2}) {
				t.Errorf("a: seen %v, want what follows", got)
			}
		})
	}
}
