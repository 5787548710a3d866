package sandbox_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox"
)

type foundMessages struct {
	Messages []foundMessage
	More     bool
	NextFrom string `json:"next_from"`
}

type foundMessage struct {
	SequenceNumber string    `json:"sequence_number"`
	State          string    `json:"state"`
	EnqueuedAt     time.Time `json:"enqueued_at"`
	LockedUntil    time.Time `json:"locked_until"`
	DeliveryCount  int       `json:"delivery_count"`
	MessageID      string    `json:"message_id"`
	SessionID      string    `json:"session_id"`
	Subject        string    `json:"subject"`
	Reason         string    `json:"dead_letter_reason"`
	Properties     map[string]struct{ Type, Value string }
	Body           struct {
		Form, Text string
		Bytes      int
	}
}

const (
	observer  = "changes/Subscriptions/observer"
	projector = "changes/Subscriptions/projector"
)

// peek asks for messages of an entity.
func peek(t *testing.T, s *sandbox.Sandbox, entity string, query url.Values) foundMessages {
	t.Helper()
	all := url.Values{"entity": {entity}}
	maps.Copy(all, query)
	return answered[foundMessages](t, s, http.StatusOK, http.MethodGet, "/messages?"+all.Encode(), "")
}

func client(t *testing.T, s *sandbox.Sandbox) *azservicebus.Client {
	t.Helper()
	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
	must(t, err)
	t.Cleanup(func() { _ = bus.Close(context.Background()) })
	return bus
}

// sendAll sends messages of one session to the default topic.
func sendAll(t *testing.T, bus *azservicebus.Client, session string, messages ...*azservicebus.Message) {
	t.Helper()
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	defer sender.Close(context.Background())
	for _, m := range messages {
		m.SessionID = &session
		must(t, sender.SendMessage(t.Context(), m, nil))
	}
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func TestPageMessages_MessagesOfAClientAreShownAndStay(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	bus := client(t, s)
	id, subject, kind := "m-1", "OrderPlaced", "application/bson"
	document, err := bson.Marshal(bson.D{{Key: "n", Value: int64(1)}})
	must(t, err)
	sendAll(t, bus, "a",
		&azservicebus.Message{
			MessageID: &id, Subject: &subject, Body: []byte(`{"n":9007199254740993}`),
			ApplicationProperties: map[string]any{"tenant": "x", "n": int64(9007199254740993)},
		},
		&azservicebus.Message{Body: []byte("plain <b>text</b>")},
		&azservicebus.Message{Body: []byte{0, 255}},
		&azservicebus.Message{Body: document, ContentType: &kind},
		&azservicebus.Message{Body: packed(t, "[1]")})
	for range 2 { // looking leaves everything as it was
		found := peek(t, s, projector, nil)
		var bodies []string
		for _, m := range found.Messages {
			bodies = append(bodies, m.Body.Form+" "+m.Body.Text)
		}
		want := []string{"json {\n  \"n\": 9007199254740993\n}", "text plain <b>text</b>", "hex 00ff", "bson {\n  \"n\": 1\n}", "hex"}
		if got := fmt.Sprintf("%.40q", bodies[:4]); got != fmt.Sprintf("%.40q", want[:4]) || !strings.HasPrefix(bodies[4], "hex 1f8b") {
			t.Errorf("got bodies %q, want %q", bodies, want)
		}
		first := found.Messages[0]
		if first.MessageID != id || first.SessionID != "a" || first.Subject != subject || first.State != "active" || first.EnqueuedAt.IsZero() ||
			first.DeliveryCount != 0 || !first.LockedUntil.IsZero() || first.Body.Bytes != 22 || found.More {
			t.Errorf("got %+v, want the message as it was sent", first)
		}
		if got := fmt.Sprint(first.Properties); got != "map[n:{int64 9007199254740993} tenant:{string x}]" {
			t.Errorf("got properties %s, want both with their types", got)
		}
	}
	receiver, err := bus.AcceptNextSessionForSubscription(t.Context(), "changes", "projector", nil)
	must(t, err)
	got, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	must(t, err)
	if got[0].MessageID != id || got[0].DeliveryCount != 1 {
		t.Errorf("got message %s, delivered %d times, want the first for the first time", got[0].MessageID, got[0].DeliveryCount)
	}
	if locked := peek(t, s, projector, nil).Messages[0]; !locked.LockedUntil.After(time.Now()) {
		t.Errorf("got a lock until %v of a message that is held, want one", locked.LockedUntil)
	}
	reason := "no reason"
	must(t, receiver.DeadLetterMessage(t.Context(), got[0], &azservicebus.DeadLetterOptions{
		Reason: &reason, PropertiesToModify: map[string]any{"tenant": "y"},
	}))
	dead := peek(t, s, projector+"/$DeadLetterQueue", nil).Messages
	if len(dead) != 1 || dead[0].MessageID != id || dead[0].Reason != reason || dead[0].Properties["tenant"].Value != "y" {
		t.Errorf("got dead letters %+v, want the message with its reason and the property that was changed", dead)
	}
	must(t, receiver.Close(t.Context()))
}

func TestPageMessages_MessagesComeInPages(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	bus := client(t, s)
	for _, session := range []string{"a", "b", "a"} {
		sendAll(t, bus, session, &azservicebus.Message{Body: []byte(session)})
	}
	first := peek(t, s, observer, url.Values{"limit": {"2"}})
	rest := peek(t, s, observer, url.Values{"from": {first.NextFrom}})
	if len(first.Messages) != 2 || !first.More || len(rest.Messages) != 1 || rest.More || rest.Messages[0].SequenceNumber != first.NextFrom {
		t.Errorf("got %+v and then %+v, want two messages and one", first, rest)
	}
	if got := peek(t, s, projector, url.Values{"session": {"a"}}).Messages; len(got) != 2 || got[0].SessionID != "a" || got[1].SessionID != "a" {
		t.Errorf("got %+v, want the two messages of session a", got)
	}
}

func TestPageMessages_CompressedBodiesAreUnpacked(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	bus := client(t, s)
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	session, encoding := "a", "gzip"
	must(t, sender.SendAMQPAnnotatedMessage(t.Context(), &azservicebus.AMQPAnnotatedMessage{
		Body:       azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{packed(t, `{"n":1}`)}},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{GroupID: &session, ContentEncoding: &encoding},
	}, nil))
	must(t, sender.SendAMQPAnnotatedMessage(t.Context(), &azservicebus.AMQPAnnotatedMessage{
		Body:       azservicebus.AMQPAnnotatedMessageBody{Value: int64(7)},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{GroupID: &session},
	}, nil))
	got := peek(t, s, observer, nil).Messages
	if len(got) != 2 || got[0].Body.Text != "{\n  \"n\": 1\n}" || got[1].Body.Text != "7" {
		t.Errorf("got %+v, want the body unpacked, and a value as text", got)
	}
}

func TestPageMessages_ASentMessageIsReceivedAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	bus := client(t, s)
	answered[struct{}](t, s, http.StatusCreated, http.MethodPost, "/messages?entity=changes",
		`{"message_id":"1","session_id":"a","subject":"S","correlation_id":"c","time_to_live":"1h",
		  "properties":{"text":"x","n":5,"f":1.5,"b":true},"body":{"total":12.50}}`)
	answered[struct{}](t, s, http.StatusCreated, http.MethodPost, "/messages?entity=changes", `{"session_id":"a","body":"hello"}`)
	answered[struct{}](t, s, http.StatusCreated, http.MethodPost, "/messages?entity=changes", `{"session_id":"a","body_hex":"00ff"}`)
	receiver, err := bus.NewReceiverForSubscription("changes", "observer", nil)
	must(t, err)
	var got []*azservicebus.ReceivedMessage
	for len(got) < 3 {
		more, err := receiver.ReceiveMessages(t.Context(), 3-len(got), nil)
		must(t, err)
		got = append(got, more...)
	}
	m := got[0]
	if m.MessageID != "1" || *m.SessionID != "a" || *m.Subject != "S" || *m.CorrelationID != "c" || *m.ContentType != "application/json" ||
		*m.TimeToLive != time.Hour || string(m.Body) != `{"total":12.50}` {
		t.Errorf("got %+v with body %s, want the message as it was written", m, m.Body)
	}
	if got := fmt.Sprintf("%#v", m.ApplicationProperties); got != `map[string]interface {}{"b":true, "f":1.5, "n":5, "text":"x"}` {
		t.Errorf("got properties %s, want them with their types", got)
	}
	if string(got[1].Body) != "hello" || got[1].ContentType != nil || !bytes.Equal(got[2].Body, []byte{0, 255}) {
		t.Errorf("got bodies %q and %x, want the text and the bytes", got[1].Body, got[2].Body)
	}
}

func TestPageMessages_ScheduledMessagesWait(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{Entities: strings.NewReader(
		`{"UserConfig":{"Namespaces":[{"Name":"ns","Queues":[{"Name":"q","Properties":{}}],"Topics":[]}],"Logging":{"Type":"File"}}}`)})
	answered[struct{}](t, s, http.StatusCreated, http.MethodPost, "/messages?entity=q", `{"body":"later","scheduled_at":"2999-01-01T00:00:00Z"}`)
	if got := peek(t, s, "q", nil).Messages; len(got) != 1 || got[0].State != "scheduled" {
		t.Errorf("got %+v, want the message that waits", got)
	}
}

func TestPageMessages_SessionsAreShownWithTheirHolders(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	bus := client(t, s)
	for _, session := range []string{"c", "a", "b"} {
		sendAll(t, bus, session, &azservicebus.Message{})
	}
	receiver, err := bus.AcceptSessionForSubscription(t.Context(), "changes", "projector", "b", nil)
	must(t, err)
	type listing struct {
		Sessions []struct {
			ID          string
			Messages    int
			Locked      bool
			LockedUntil time.Time `json:"locked_until"`
			Holder      string
		}
		More bool
	}
	list := func(query string) listing {
		return answered[listing](t, s, http.StatusOK, http.MethodGet, "/sessions?entity="+projector+query, "")
	}
	all := list("")
	if len(all.Sessions) != 3 || all.More || all.Sessions[0].ID != "a" || all.Sessions[0].Locked || all.Sessions[0].Messages != 1 {
		t.Errorf("got %+v, want a, b and c, a free and with a message", all)
	}
	held := list("&held=true").Sessions
	if len(held) != 1 || held[0].ID != "b" || !held[0].LockedUntil.After(time.Now()) || held[0].Holder == "" {
		t.Errorf("got %+v, want b with its holder and the end of its lock", held)
	}
	if page := list("&after=a&limit=1"); len(page.Sessions) != 1 || page.Sessions[0].ID != "b" || !page.More {
		t.Errorf("got %+v behind a, want b and that there is more", page)
	}
	must(t, receiver.Close(t.Context()))
}

// TestPageMessages_LookingAtMessagesCostsNothing looks at an entity that clients may not use.
func TestPageMessages_LookingAtMessagesCostsNothing(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	sendAll(t, client(t, s), "a", &azservicebus.Message{})
	w, err := sandbox.ReadWorld(strings.NewReader(`{"service_bus":{"credits_per_second":1,"costs":{"peek":1000,"send":1}}}`))
	must(t, err)
	s.SetWorld(w)
	for _, path := range []string{"changes", observer} {
		_, err = s.StartFault(map[string]string{"kind": "servicebus.throttle", "path": path})
		must(t, err)
	}
	for range 5 {
		if got := len(peek(t, s, observer, nil).Messages); got != 1 {
			t.Fatalf("got %d messages, want one", got)
		}
	}
	busy := answered[struct{ Error string }](t, s, http.StatusServiceUnavailable, http.MethodPost, "/messages?entity=changes", `{"session_id":"a"}`)
	if !strings.Contains(busy.Error, "server-busy") {
		t.Errorf("got %q for a send, want server-busy", busy.Error)
	}
}
